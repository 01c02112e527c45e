//! State that all connections share.

use crate::access::Access;
use crate::ask::Request;
use crate::faults::Fault;
use crate::quota;
use crate::state::State;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// As many requests are remembered.
const MOST_REQUESTS: usize = 200_000;

/// How the server behaves, as a test sets it.
#[derive(Debug, Clone)]
pub struct Manner {
    /// How long a pod that was deleted or evicted stays; `None`: until it is finished by hand.
    pub grace: Option<Duration>,
    /// How often a watch that asked for them gets bookmarks.
    pub bookmarks: Duration,
    /// Whether a watch from too old a version is answered with HTTP 410, not with an event in a stream. Real servers do
    /// both.
    pub expired_as_status: bool,
}

/// Requests by number, the oldest forgotten first.
#[derive(Default)]
pub struct Log {
    pub first: usize,
    pub requests: VecDeque<Request>,
}

impl Log {
    /// Remembers a request; answers its number.
    pub fn begin(&mut self, request: Request) -> usize {
        self.requests.push_back(request);
        if self.requests.len() > MOST_REQUESTS {
            self.requests.pop_front();
            self.first += 1;
        }
        self.first + self.requests.len() - 1
    }

    /// Notes what it was answered.
    pub fn end(&mut self, number: usize, status: u16) {
        if let Some(request) = number.checked_sub(self.first).and_then(|at| self.requests.get_mut(at)) {
            request.status = status;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.first += self.requests.len();
        self.requests.clear();
    }
}

/// State, rules, faults and the log.
pub struct Server {
    state: Mutex<State>,
    access: Mutex<Access>,
    faults: Mutex<Vec<Fault>>,
    log: Mutex<Log>,
    manner: Mutex<Manner>,
    /// Changes after every write, and when watches are to be closed.
    pub wake: watch::Sender<u64>,
    /// How often all watches were closed.
    pub closed: watch::Sender<u64>,
    /// While true, nothing is answered.
    pub paused: watch::Sender<bool>,
    /// While true, connections are refused.
    pub down: watch::Sender<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    pub fn new() -> Self {
        let manner = Manner {
            grace: Some(Duration::ZERO),
            // As often as a real server sends them.
            bookmarks: Duration::from_mins(1),
            expired_as_status: false,
        };
        Self {
            state: Mutex::new(State::new()),
            access: Mutex::default(),
            faults: Mutex::default(),
            log: Mutex::default(),
            manner: Mutex::new(manner),
            wake: watch::Sender::new(0),
            closed: watch::Sender::new(0),
            paused: watch::Sender::new(false),
            down: watch::Sender::new(false),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub fn access(&self) -> MutexGuard<'_, Access> {
        lock(&self.access)
    }

    pub fn faults(&self) -> MutexGuard<'_, Vec<Fault>> {
        lock(&self.faults)
    }

    pub fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    pub fn manner(&self) -> MutexGuard<'_, Manner> {
        lock(&self.manner)
    }

    /// Lets controllers follow what was written, and wakes the watches.
    pub fn tell(&self) {
        quota::settle(&mut self.state());
        self.wake.send_modify(|count| *count += 1);
    }

    /// Waits until the server answers again.
    pub async fn unpaused(&self) {
        let mut paused = self.paused.subscribe();
        // The sender lives as long as the server: it cannot fail.
        drop(paused.wait_for(|paused| !paused).await);
    }
}
