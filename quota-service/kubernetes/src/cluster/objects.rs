//! Follows the objects of one kind: a list, then a watch, which is taken up again by itself.
//!
//! kube's own `watcher` reports neither that a watch is taken up again nor its bookmarks. A watch of objects that seldom change
//! would look broken until one of them does, and a connection that died silently would look well for five minutes. Its pauses grow to
//! 30 s; here they end at 5 s.

use super::served::in_words;
use futures_util::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Error, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Objects of one answer to a list. A pod of the API has some 5 KB.
const PAGE: u32 = 500;
/// First pause after a fault; it doubles with each fault in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause after a fault.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// An answer to a list comes within this.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Limits of a watch. Both together are below the 30 s without a sign of life after which the view counts as stale.
const PACE: Pace = Pace { silent: Duration::from_secs(15), begins: Duration::from_secs(10) };
/// The server ends a watch after this, s.
const WATCH_S: u32 = 290;
/// HTTP status of a version whose history is forgotten.
const EXPIRED: u16 = 410;

/// Events of the objects.
#[derive(Debug, Clone)]
pub enum Event<K> {
    /// A list begins. What is not in it has gone.
    Init,
    /// An object of the list.
    InitApply(K),
    /// The list is complete.
    InitDone,
    /// The watch goes on: every change from here on is reported, and what was missed follows.
    Resumed,
    /// An object is new or has changed.
    Apply(K),
    /// An object was deleted; its last state.
    Delete(K),
    /// Nothing is reported until the watch resumes.
    Lost {
        /// Last sign of life.
        since: Instant,
        /// Cause.
        fault: String,
    },
}

/// Pauses between tries: they double from the first to the longest, and begin again after a success.
#[derive(Debug, Default)]
struct Pauses(u32);

impl Pauses {
    fn next(&mut self) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.0.min(16)).min(LONGEST_PAUSE);
        self.0 += 1;
        pause
    }

    const fn reset(&mut self) {
        self.0 = 0;
    }
}

/// Limits of a watch.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// A watch that is silent for so long is begun again where it was. A server sends no bookmarks for a kind that has not changed
    /// since the server started, so that silence is no fault; and a server that is frozen is found by the watch that does not begin.
    silent: Duration,
    /// The head of the answer to a watch comes within this.
    begins: Duration,
}

/// Where a watch begins.
enum Next {
    /// With a list.
    List,
    /// After this version.
    From(String),
}

/// A watch that ended, or a list that failed.
struct Broken {
    next: Next,
    fault: String,
}

/// Tells all objects of a kind, and each change, until it is dropped.
pub async fn follow<K>(api: Api<K>, tell: impl FnMut(Event<K>))
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    follow_at(PACE, api, tell).await;
}

async fn follow_at<K>(pace: Pace, api: Api<K>, mut tell: impl FnMut(Event<K>))
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let (mut next, mut pauses) = (Next::List, Pauses::default());
    let (mut alive, mut listed_at) = (Instant::now(), None);
    loop {
        let went = match next {
            Next::List => {
                let listed = list(&api, &mut tell).await;
                listed_at = Some(Instant::now());
                listed
            }
            Next::From(version) => match watch(&api, version, pace, (&mut alive, &mut pauses), &mut tell).await {
                // A server that forgets at once what it has listed is left a pause.
                Ok(Next::List) if listed_at.is_some_and(|at| at.elapsed() < LONGEST_PAUSE) => {
                    let fault = "the server has forgotten the version of its last list (410)".to_owned();
                    Err(Broken { next: Next::List, fault })
                }
                went => went,
            },
        };
        next = match went {
            Ok(next) => next,
            Err(Broken { next, fault }) => {
                tell(Event::Lost { since: alive, fault });
                sleep(pauses.next()).await;
                next
            }
        };
    }
}

fn is_expired(fault: &Error) -> bool {
    matches!(fault, Error::Api(status) if status.code == EXPIRED)
}

async fn list<K>(api: &Api<K>, tell: &mut impl FnMut(Event<K>)) -> Result<Next, Broken>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let broken = |fault: String| Broken { next: Next::List, fault };
    tell(Event::Init);
    let mut token = None;
    loop {
        let params = ListParams { limit: Some(PAGE), continue_token: token.take(), ..ListParams::default() };
        let late = |_| broken(format!("no answer to a list within {} s", ANSWERS_WITHIN.as_secs()));
        let page = timeout(ANSWERS_WITHIN, api.list(&params)).await.map_err(late)?;
        let page = page.map_err(|fault| broken(in_words(&fault)))?;
        page.items.into_iter().for_each(|object| tell(Event::InitApply(object)));
        token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            let version = page.metadata.resource_version.unwrap_or_default();
            tell(Event::InitDone);
            return Ok(Next::From(version));
        }
    }
}

/// One watch, to its end.
async fn watch<K>(
    api: &Api<K>,
    mut version: String,
    pace: Pace,
    (alive, pauses): (&mut Instant, &mut Pauses),
    tell: &mut impl FnMut(Event<K>),
) -> Result<Next, Broken>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let broken = |version: &str, fault: String| Broken { next: Next::From(version.to_owned()), fault };
    let params = WatchParams { timeout: Some(WATCH_S), bookmarks: true, ..WatchParams::default() };
    let events = match timeout(pace.begins, api.watch(&params, &version)).await {
        Err(_) => {
            return Err(broken(&version, format!("no answer to a watch within {} s", pace.begins.as_secs())));
        }
        Ok(Err(fault)) if is_expired(&fault) => return Ok(Next::List),
        Ok(Err(fault)) => return Err(broken(&version, in_words(&fault))),
        Ok(Ok(events)) => events,
    };
    let began = Instant::now();
    *alive = began;
    tell(Event::Resumed);
    let mut events = pin!(events);
    loop {
        let Ok(event) = timeout(pace.silent, events.next()).await else { return Ok(Next::From(version)) };
        let mut seen = |meta: &str| meta.clone_into(&mut version);
        match event {
            // The server ends a watch now and then. One that ends each one at once is left a pause.
            None if began.elapsed() < FIRST_PAUSE => {
                return Err(broken(&version, "the server ended the watch at once".to_owned()));
            }
            None => return Ok(Next::From(version)),
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                seen(object.meta().resource_version.as_deref().unwrap_or_default());
                tell(Event::Apply(object));
            }
            Some(Ok(WatchEvent::Deleted(object))) => {
                seen(object.meta().resource_version.as_deref().unwrap_or_default());
                tell(Event::Delete(object));
            }
            Some(Ok(WatchEvent::Bookmark(bookmark))) => seen(&bookmark.metadata.resource_version),
            Some(Ok(WatchEvent::Error(status))) if status.code == EXPIRED => return Ok(Next::List),
            Some(Ok(WatchEvent::Error(status))) => return Err(broken(&version, status.message)),
            Some(Err(fault)) => return Err(broken(&version, in_words(&fault))),
        }
        *alive = Instant::now();
        pauses.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::slim::PriorityClass;
    use crate::tests::{client, eventually};
    use fake_kubernetes::{FakeKubernetes, Fault, What};
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    #[test]
    fn pauses_double_to_five_seconds_and_begin_again_after_a_success() {
        let mut pauses = Pauses::default();
        let ms = |pauses: &mut Pauses| -> Vec<u128> { (0..7).map(|_| pauses.next().as_millis()).collect() };
        assert_eq!(ms(&mut pauses), [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        pauses.reset();
        assert_eq!(ms(&mut pauses)[0], 250);
    }

    type Words = Arc<Mutex<Vec<String>>>;

    /// Words of the events.
    async fn followed(fake: &FakeKubernetes) -> (Words, tokio::task::JoinHandle<()>) {
        followed_at(PACE, fake).await
    }

    async fn followed_at(pace: Pace, fake: &FakeKubernetes) -> (Words, tokio::task::JoinHandle<()>) {
        let events = Words::default();
        let (api, to) = (Api::<PriorityClass>::all(client(fake).await), Arc::clone(&events));
        let name = |class: &PriorityClass| class.metadata.name.clone().unwrap();
        let word = move |event: Event<PriorityClass>| match event {
            Event::Init => "list".to_owned(),
            Event::InitApply(class) => format!("in {}", name(&class)),
            Event::InitDone => "listed".to_owned(),
            Event::Resumed => "resumed".to_owned(),
            Event::Apply(class) => format!("is {}", name(&class)),
            Event::Delete(class) => format!("gone {}", name(&class)),
            Event::Lost { .. } => "lost".to_owned(),
        };
        let task = tokio::spawn(follow_at(pace, api, move |event| to.lock().unwrap().push(word(event))));
        (events, task)
    }

    fn class(name: &str) -> serde_json::Value {
        json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": 1 })
    }

    #[tokio::test]
    async fn a_watch_that_is_taken_up_again_says_so_without_any_change_and_misses_none() {
        let fake = FakeKubernetes::start().await;
        fake.put(class("a"));
        let (events, task) = followed(&fake).await;
        let events = |words: &[&str]| *events.lock().unwrap() == words;
        let first = ["list", "in a", "listed", "resumed"];
        eventually("the first list", || events(&first)).await;
        fake.go_down();
        eventually("it is lost", || events(&[&first[..], &["lost"]].concat())).await;
        fake.put(class("b"));
        fake.delete("priorityclasses", "", "a");
        fake.come_up();
        let then = [&first[..], &["lost", "resumed", "is b", "gone a"]].concat();
        eventually("it goes on where it was", || events(&then)).await;
        task.abort();
    }

    #[tokio::test]
    async fn silence_is_no_fault_and_a_frozen_server_is_one() {
        let fake = FakeKubernetes::start().await;
        let pace = Pace { silent: Duration::from_millis(100), begins: Duration::from_millis(300) };
        let (events, task) = followed_at(pace, &fake).await;
        let count = |wanted: &str| events.lock().unwrap().iter().filter(|word| *word == wanted).count();
        eventually("the watch begins again in silence", || count("resumed") >= 3).await;
        assert_eq!((count("lost"), count("list")), (0, 1));
        fake.pause();
        eventually("the frozen server is found", || count("lost") >= 1).await;
        fake.put(class("a"));
        fake.resume();
        eventually("nothing is missed", || count("is a") == 1).await;
        task.abort();
    }

    #[tokio::test]
    async fn a_version_that_is_forgotten_is_listed_again() {
        let fake = FakeKubernetes::start().await;
        for as_status in [false, true] {
            fake.expired_as_status(as_status);
            let (events, task) = followed(&fake).await;
            let resumed = || events.lock().unwrap().iter().filter(|word| *word == "resumed").count();
            eventually("the watch", || resumed() == 1).await;
            fake.put(class("a"));
            fake.compact();
            fake.put(class("b"));
            fake.close_watches();
            eventually("the second list", || {
                events.lock().unwrap().iter().filter(|word| *word == "listed").count() == 2
            })
            .await;
            eventually("the watch again", || events.lock().unwrap().last().unwrap() == "resumed").await;
            task.abort();
        }
    }

    #[tokio::test]
    async fn a_server_that_forgets_at_once_what_it_has_listed_is_left_pauses() {
        let fake = FakeKubernetes::start().await;
        fake.fault(Fault::new(What::Fail(EXPIRED), 2).verb("watch"));
        let (events, task) = followed(&fake).await;
        let words = ["list", "listed", "lost", "list", "listed", "lost", "list", "listed", "resumed"];
        let began = Instant::now();
        eventually("the watch", || *events.lock().unwrap() == words).await;
        assert!(began.elapsed() >= FIRST_PAUSE * 3, "after 250 and 500 ms");
        task.abort();
    }

    #[tokio::test]
    async fn faults_of_lists_and_watches_are_reported_and_tried_again() {
        let fake = FakeKubernetes::start().await;
        fake.fault(Fault::new(What::Fail(500), 2).verb("list"));
        fake.fault(Fault::new(What::Throttle(1), 1).verb("watch"));
        let (events, task) = followed(&fake).await;
        let words = ["list", "lost", "list", "lost", "list", "listed", "lost", "resumed"];
        eventually("the watch", || *events.lock().unwrap() == words).await;
        task.abort();
    }
}
