//! A network between a service and Postgres that fails on request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The next commit does not arrive; its connection is lost.
    BeforeCommit,
    /// The next commit arrives; its answer, and the connection, are lost.
    AfterCommit,
    /// Every message comes late.
    Slow(Duration),
    /// Nothing comes through any more, and no side is notified.
    Silent,
    /// Connections are closed, and none is taken.
    Gone,
}

/// Between a service and a database.
pub struct Proxy {
    port: u16,
    accepting: JoinHandle<()>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    fault: Mutex<Option<Fault>>,
    /// Counts the ends of all connections that are open.
    cut: watch::Sender<u64>,
    injected: AtomicU64,
}

impl State {
    fn fault(&self) -> Option<Fault> {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a fault that happens once, where it is this one.
    fn takes(&self, wanted: Fault) -> bool {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = *fault == Some(wanted);
        if is_it {
            *fault = None;
            self.injected.fetch_add(1, Ordering::Relaxed);
        }
        is_it
    }
}

impl Proxy {
    /// Listens on a free port, and passes everything on to the server of a URL.
    ///
    /// # Panics
    /// There is no free port, or the URL has no `@HOST:PORT/`.
    pub async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let server = server_of(url).to_owned();
        let state = Arc::new(State::default());
        let shared = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if shared.fault() == Some(Fault::Gone) {
                    continue;
                }
                // Before the next one is taken: no connection outlives a cut.
                let cut = shared.cut.subscribe();
                tokio::spawn(pass(client, server.clone(), shared.clone(), cut));
            }
        });
        Self { port, accepting, state }
    }

    /// The URL with this network in between.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        url.replacen(server_of(url), &format!("127.0.0.1:{}", self.port), 1)
    }

    /// Lets something go wrong from now on, or once.
    pub fn inject(&self, fault: Fault) {
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        if !matches!(fault, Fault::BeforeCommit | Fault::AfterCommit) {
            self.state.injected.fetch_add(1, Ordering::Relaxed);
        }
        if fault == Fault::Gone {
            self.state.cut.send_modify(|count| *count += 1);
        }
    }

    /// Closes its port, and with it every connection, for good: new connections are refused.
    pub async fn close(&mut self) {
        self.accepting.abort();
        // It was aborted.
        let _ = (&mut self.accepting).await;
        self.state.cut.send_modify(|count| *count += 1);
    }

    /// Lets everything go well again. What was silent is lost.
    pub fn heal(&self) {
        let before = self.state.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        if before == Some(Fault::Silent) {
            self.state.cut.send_modify(|count| *count += 1);
        }
    }

    /// Faults that have happened.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.state.injected.load(Ordering::Relaxed)
    }
}

fn server_of(url: &str) -> &str {
    let (_, rest) = url.rsplit_once('@').expect("postgres://USER@HOST:PORT/NAME");
    rest.split_once('/').expect("postgres://USER@HOST:PORT/NAME").0
}

async fn pass(client: TcpStream, server: String, state: Arc<State>, mut cut: watch::Receiver<u64>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    // Messages are small, and each waits for the answer of the one before.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let (dropped, drops) = watch::channel(false);
    let asking = ask(from_client, to_server, state.clone(), dropped);
    let answering = answer(from_server, to_client, state, drops);
    // Whichever ends, ends both: the halves are dropped, and the connections with them.
    tokio::select! {
        _ = asking => {}
        _ = answering => {}
        _ = cut.changed() => {}
    }
}

/// The first message of a client that asks for TLS: its length and a code. The servers of the tests answer that they do not.
const ASKS_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Passes on what the client says, message by message.
async fn ask(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    state: Arc<State>,
    dropped: watch::Sender<bool>,
) -> std::io::Result<()> {
    let mut is_first = true;
    loop {
        let message = message(&mut client, is_first).await?;
        // A client that asks for TLS begins again after the answer.
        is_first = is_first && message == ASKS_FOR_TLS;
        if let Some(Fault::Slow(delay)) = state.fault() {
            tokio::time::sleep(delay).await;
        }
        while state.fault() == Some(Fault::Silent) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let commits = message.first() == Some(&b'Q') && message.get(5..11) == Some(b"COMMIT");
        if commits && state.takes(Fault::BeforeCommit) {
            return Ok(());
        }
        if commits && state.takes(Fault::AfterCommit) {
            dropped.send_replace(true);
        }
        server.write_all(&message).await?;
    }
}

/// A message of the client: a kind, but for the first one, a length that counts itself, and the rest.
async fn message(client: &mut OwnedReadHalf, is_first: bool) -> std::io::Result<Vec<u8>> {
    let head = if is_first { 4 } else { 5 };
    let mut message = vec![0; head];
    client.read_exact(&mut message).await?;
    let length = u32::from_be_bytes(message[head - 4..].try_into().expect("four bytes")) as usize;
    let rest = length.checked_sub(4).ok_or(std::io::ErrorKind::InvalidData)?;
    message.resize(head + rest, 0);
    client.read_exact(&mut message[head..]).await?;
    Ok(message)
}

/// Passes on what the server says, until an answer is to be lost: that one is waited for, so that what it tells has happened.
async fn answer(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    state: Arc<State>,
    drops: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1_024];
    loop {
        let read = server.read(&mut buffer).await?;
        if read == 0 || *drops.borrow() {
            return Ok(());
        }
        while state.fault() == Some(Fault::Silent) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client.write_all(&buffer[..read]).await?;
    }
}
