use super::elector::{Answer, Deed, Elector, Times};
use super::record::Record;
use super::{Epoch, Fence, epoch_of, run, stamp};
use crate::tests::{client, config, eventually};
use fake_kubernetes::{FakeKubernetes, Fault, What};
use proptest::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const TIMES: Times =
    Times { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) };

/// The Lease of an API server: each write makes a new version, and is refused where the version is not the one given.
#[derive(Default)]
struct Server {
    lease: Option<Record>,
    versions: u64,
}

impl Server {
    fn perform(&mut self, deed: &Deed) -> Answer {
        let wanted = match deed {
            Deed::Wait { .. } => unreachable!("nothing is sent"),
            Deed::Read => return Answer::Is(self.lease.clone()),
            Deed::Create(_) if self.lease.is_some() => return Answer::Stale,
            Deed::Write(_) if self.lease.is_none() => return Answer::Is(None),
            Deed::Write(record) if self.lease.as_ref().is_some_and(|lease| lease.version != record.version) => {
                return Answer::Stale;
            }
            Deed::Create(record) | Deed::Write(record) => record,
        };
        self.versions += 1;
        self.lease = Some(Record { version: self.versions.to_string(), ..wanted.clone() });
        Answer::Is(self.lease.clone())
    }
}

struct Replica {
    elector: Elector,
    /// The request under way, when it was sent, and its answer once the server has done it.
    asks: Option<(Deed, Instant, Option<Answer>)>,
}

struct World {
    now: Instant,
    server: Server,
    replicas: Vec<Replica>,
    /// Requests that nobody waits for any more, and that may still be done.
    astray: Vec<Deed>,
}

impl World {
    fn new(replicas: usize) -> Self {
        // All have one name: even that must not make two leaders.
        let named = |at: usize| if at < 2 { "same".to_owned() } else { format!("replica-{at}") };
        let of = |at| Replica { elector: Elector::new(named(at), TIMES), asks: None };
        Self {
            now: Instant::now(),
            server: Server::default(),
            replicas: (0..replicas).map(of).collect(),
            astray: vec![],
        }
    }

    fn step(&mut self, at: usize, what: u8, amount: u64) {
        let now = self.now;
        let replica = &mut self.replicas[at];
        match what {
            0 => self.now += Duration::from_millis(amount),
            1 if replica.asks.is_none() => match replica.elector.next(now) {
                Deed::Wait { .. } => {}
                deed => replica.asks = Some((deed, now, None)),
            },
            2 => {
                if let Some((deed, _, answer @ None)) = &mut replica.asks {
                    *answer = Some(self.server.perform(deed));
                }
            }
            3 if replica.asks.as_ref().is_some_and(|(_, _, answer)| answer.is_some()) => {
                let Some((deed, sent, Some(answer))) = replica.asks.take() else { unreachable!() };
                replica.elector.answered(&deed, sent, now, answer);
            }
            4 => {
                if let Some((deed, sent, answer)) = replica.asks.take() {
                    replica.elector.answered(&deed, sent, now, Answer::Failed { after: Duration::ZERO });
                    self.astray.extend(answer.is_none().then_some(deed));
                }
            }
            5 if !self.astray.is_empty() => {
                let deed = self.astray.remove(amount as usize % self.astray.len());
                self.server.perform(&deed);
            }
            6 if amount.is_multiple_of(8) => self.server.lease = None,
            7 if amount.is_multiple_of(8) => {
                replica.asks = None;
                if let Some(deed) = replica.elector.release(now) {
                    self.server.perform(&deed);
                }
            }
            8 if amount.is_multiple_of(8) => replica.elector.outpaced(u32::try_from(amount % 50).unwrap(), now),
            // A request from its beginning to its answer.
            9 => [1, 2, 3].into_iter().for_each(|what| self.step(at, what, amount)),
            _ => {}
        }
    }

    fn leaders(&self) -> Vec<(usize, u32)> {
        let led = self.replicas.iter().enumerate();
        led.filter_map(|(at, one)| Some((at, one.elector.epoch(self.now)?.0))).collect()
    }

    /// Every replica asks and is answered at once, for so long.
    fn calm(&mut self, seconds: u64) {
        for _ in 0..seconds * 4 {
            for at in 0..self.replicas.len() {
                for what in [1, 2, 3] {
                    self.step(at, what, 1);
                }
            }
            assert!(self.leaders().len() <= 1);
            self.step(0, 0, 250);
        }
    }
}

/// Mostly requests that are answered, and time that passes; now and then anything below `kinds`.
fn steps(kinds: u8) -> impl Strategy<Value = Vec<(usize, u8, u64)>> {
    let what = prop_oneof![6 => Just(9u8), 2 => Just(0u8), 3 => 0..kinds];
    prop::collection::vec((0usize..3, what, 0u64..4_000), 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn two_never_believe_at_once_that_they_lead(steps in steps(9)) {
        let mut world = World::new(3);
        for (at, what, amount) in steps {
            world.step(at, what, amount);
            prop_assert!(world.leaders().len() <= 1, "leaders and their epochs: {:?}", world.leaders());
        }
        // After any faults, one replica leads once it is calm.
        world.calm(60);
        prop_assert_eq!(world.leaders().len(), 1);
    }

    #[test]
    fn a_change_of_holder_raises_the_epoch(steps in steps(6)) {
        let (mut world, mut last) = (World::new(3), (usize::MAX, 0));
        for (at, what, amount) in steps {
            world.step(at, what, amount);
            for leader in world.leaders() {
                prop_assert!(leader == last || leader.1 > last.1, "{last:?} then {leader:?}");
                last = leader;
            }
        }
    }
}

#[test]
fn a_leader_is_there_once_the_first_lease_is_old_enough_and_who_goes_is_followed_at_once() {
    let mut world = World::new(3);
    world.calm(17);
    let first = world.leaders()[0];
    let gives_back = world.replicas[first.0].elector.release(world.now).unwrap();
    world.server.perform(&gives_back);
    world.replicas.remove(first.0);
    world.calm(3);
    assert_eq!(world.leaders()[0].1, first.1 + 1, "within a retry, in the next epoch");
}

#[test]
fn a_renewal_whose_answer_is_slow_counts_from_when_it_was_sent() {
    let mut world = World::new(2);
    world.calm(17);
    let (leader, epoch) = world.leaders()[0];
    world.step(leader, 0, 2_000);
    world.step(leader, 1, 0);
    world.step(leader, 2, 0);
    for half_s in 0..34 {
        world.step(1 - leader, 9, 0);
        world.step(leader, 0, 500);
        if half_s == 17 {
            world.step(leader, 3, 0);
        }
        assert!(world.leaders().len() <= 1, "{:?}", world.leaders());
    }
    assert_eq!(world.leaders(), [(1 - leader, epoch + 1)]);
}

#[test]
fn an_epoch_seen_on_an_object_is_passed_by_the_next_one() {
    let mut world = World::new(1);
    world.calm(17);
    assert_eq!(world.leaders(), [(0, 1)]);
    world.replicas[0].elector.outpaced(40, world.now);
    assert_eq!(world.leaders(), [], "who is outpaced leads no more");
    world.calm(20);
    assert_eq!(world.leaders(), [(0, 41)]);
}

#[test]
fn the_fence_holds_back_who_is_older_or_leads_no_more_and_says_so_to_the_elector() {
    let (outpaced, seen) = watch::channel(0);
    let (epochs, lead) = watch::channel(None);
    let fence = Fence::new(lead);
    let mut object = json!({ "metadata": { "annotations": { "other": "kept" } } });
    assert!(fence.check(&object).is_err(), "nobody leads");
    epochs.send_replace(Some(Epoch::new(7, Instant::now() + Duration::from_mins(10), outpaced.into())));
    let epoch = fence.check(&object).unwrap();
    stamp(&mut object, epoch);
    assert_eq!((epoch_of(&object), fence.check(&object)), (7, Ok(7)));
    stamp(&mut object, 9);
    assert!(fence.check(&object).unwrap_err().to_string().contains("epoch 9, ours is 7"));
    assert_eq!(*seen.borrow(), 9);
    object["metadata"]["annotations"][crate::names::EPOCH] = "99999999999".into();
    assert_eq!(fence.check(&object), Ok(7), "what no lease can count is no epoch");
    epochs.send_modify(|epoch| epoch.as_mut().unwrap().until = Instant::now());
    assert!(fence.check(&object).is_err(), "a process that was stopped wakes up after its end");
}

/// The number of the epoch, where it leads.
fn epoch(lead: &watch::Receiver<Option<Epoch>>) -> Option<u32> {
    lead.borrow().as_ref().map(Epoch::number)
}

#[tokio::test]
async fn of_two_replicas_one_leads_and_the_other_follows_when_it_is_killed_or_goes() {
    let fake = FakeKubernetes::start().await;
    fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "headroom-system" } }));
    let (stop, stopped) = watch::channel(false);
    let mut runs = Vec::new();
    for name in ["a", "b"] {
        runs.push((name, run(client(&fake).await, &config(name), stopped.clone())));
    }
    eventually("a leader", || runs.iter().any(|(_, (lead, _))| epoch(lead).is_some())).await;
    let first = usize::from(epoch(&runs[0].1.0).is_none());
    let (killed, (_, task)) = runs.remove(first);
    task.abort();
    let (other, (lead, task)) = runs.remove(0);
    eventually("the other leads", || epoch(&lead) == Some(2)).await;
    let lease = fake.get("leases", "headroom-system", "headroom-kubernetes").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], other, "{killed} was killed");
    stop.send_replace(true);
    task.await.unwrap();
    let lease = fake.get("leases", "headroom-system", "headroom-kubernetes").unwrap();
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["spec"]["leaseDurationSeconds"]), (&json!(""), &json!(1)));
    assert_eq!(epoch(&lead), None);
}

#[tokio::test]
async fn who_cannot_renew_stops_to_lead_and_leads_again_in_a_later_epoch_only_if_another_did() {
    let fake = FakeKubernetes::start().await;
    fake.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "headroom-system" } }));
    let (_stop, stopped) = watch::channel(false);
    let (lead, task) = run(client(&fake).await, &config("a"), stopped);
    eventually("a leader", || epoch(&lead) == Some(1)).await;
    fake.pause();
    eventually("it stops", || epoch(&lead).is_none()).await;
    fake.resume();
    eventually("it leads again", || epoch(&lead).is_some()).await;
    fake.fault(Fault::new(What::FailAfter(500), 1).resource("leases").verb("update"));
    let renewals = || fake.writes().len();
    let before = renewals();
    eventually("renewals go on after one whose answer was lost", || renewals() > before + 2).await;
    assert!(epoch(&lead).is_some(), "one lost answer ends no lead");
    task.abort();
}
