//! Writes limits, while this connector holds the lease.
//!
//! Nothing is written when the process ends: another one goes on, and where there is none the heartbeat stands still and the
//! [watchdog](crate::watchdog) lowers what is published.

mod expected;
pub mod held;
mod now;
mod order;
pub mod pace;
mod retries;
mod share;
pub mod turns;
pub mod wanted;

pub use expected::Expected;
pub use held::Counting;
pub use now::held_now;
pub use order::{Step, steps};
pub use wanted::{Inputs, Wanted};

use crate::config::{Config, Mode};
use crate::heartbeat::{self, Heartbeat};
use crate::hook;
use crate::lease::Held;
use crate::limits::{self, ByName, Tres};
use crate::shared::Shared;
use crate::site::Site;
use crate::view::View;
use connectors::Offers;
use connectors::plan::{Basis, Planner, Rules};
use now::{Now, look_now};
use pace::Pace;
use serving::standing::Standing;
use slurm_records::RecordsError;
use slurm_records::nodes::NodesFault;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tracing::{info, warn};
use turns::Turns;

/// Why a round ended early.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Slurm does not answer, or refuses.
    #[error(transparent)]
    Slurm(#[from] RecordsError),
    /// A type of GPUs is no name.
    #[error(transparent)]
    Nodes(#[from] NodesFault),
    /// A QOS or account of the settings is not there.
    #[error("{key}: Slurm knows no {what} {name}: create it, or correct the setting")]
    Unknown {
        /// Setting.
        key: &'static str,
        /// QOS or account.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A write did not arrive.
    #[error("the limit of {name} reads back as {read}, and {written} was written: does another program write it?")]
    ReadBack {
        /// QOS or account.
        name: String,
        /// Limits that stand.
        read: String,
        /// Limits that were written.
        written: String,
    },
    /// A write failed, and what it would have raised waits for its turn again.
    #[error("a higher limit could not be written: it is tried again {after_s} s after it was wanted again")]
    Unwritten {
        /// `raise_after_s`.
        after_s: u64,
    },
    /// The lease ended during the round.
    #[error("the lease has ended: another connector may write")]
    Lease,
    /// A file of ours cannot be written.
    #[error("{0}")]
    File(String),
}

/// Publishes until `stop` is set.
pub async fn run(
    site: Site,
    config: Arc<Config>,
    shared: Arc<Shared>,
    offers: watch::Receiver<Arc<Offers>>,
    lease: watch::Receiver<Held>,
    mut stop: watch::Receiver<bool>,
) {
    let every = Duration::from_secs(config.publish_s);
    let mut publisher = Publisher::new(site, config, shared, offers, lease);
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stops| *stops) => return,
            () = publisher.round() => {}
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stops| *stops) => return,
            () = tokio::time::sleep(every) => {}
        }
    }
}

/// Ground of a round.
struct Read {
    stands: ByName,
    held: ByName,
    wanted: Wanted,
    expected: Vec<Expected>,
}

struct Publisher {
    site: Site,
    config: Arc<Config>,
    shared: Arc<Shared>,
    offers: watch::Receiver<Arc<Offers>>,
    lease: watch::Receiver<Held>,
    planner: Planner,
    pace: Pace,
    heartbeat: Heartbeat,
    faults: Standing,
    /// Last message of the log on lowered limits.
    lowered: String,
    turns: Turns,
    /// When a write failed last, where none has succeeded since.
    unwritten: Option<Instant>,
}

impl Publisher {
    fn new(
        site: Site,
        config: Arc<Config>,
        shared: Arc<Shared>,
        offers: watch::Receiver<Arc<Offers>>,
        lease: watch::Receiver<Held>,
    ) -> Self {
        let rules = Rules {
            least_change_gpus: config.least_change_gpus,
            least_change_ratio: config.least_change_ratio,
            raise_after: Duration::from_secs(config.raise_after_s),
            looks_within: Duration::from_secs(config.publish_s.max(config.look_s)) * 3,
        };
        let heartbeat = Heartbeat::new(config.heartbeat_file.get().unwrap_or(Path::new("")), config.identity());
        let (planner, pace) = (Planner::new(rules), Pace::default());
        let (faults, lowered, turns) = (Standing::new(), String::new(), Turns::default());
        let unwritten = None;
        Self { site, config, shared, offers, lease, planner, pace, heartbeat, faults, lowered, turns, unwritten }
    }

    /// A write may begin: it ends before the lease does.
    fn may_write(&self) -> bool {
        self.lease.borrow().holds_for(self.site.programs().write_within())
    }

    async fn round(&mut self) {
        if self.lease.borrow().is_elsewhere() {
            // The other one writes, and the watchdog beside this one has nothing to lower.
            self.note_heartbeat();
            self.note_quota_file().await;
            return;
        }
        if !self.may_write() || !self.pace.may_go(Instant::now()) {
            return;
        }
        let offers = self.offers.borrow().clone();
        // Before quotas are known nothing is written and nothing renewed.
        if offers.asked_at.is_none() || self.shared.view().is_none() {
            return;
        }
        let went = self.keep_in_order(&offers).await;
        self.pace.note(Instant::now(), went.is_ok());
        let went = went.and_then(|()| self.all_written());
        metrics::gauge!("headroom_slurm_limits_in_order").set(f64::from(u8::from(went.is_ok())));
        self.faults.note(
            "",
            &went,
            |fault| warn!(%fault, "limits are not as they should be: the watchdog lowers them if that lasts"),
            |over| info!(lasted_s = over.lasted_s, "limits are as they should be again"),
        );
    }

    /// A raise that failed waits again for `raise_after_s`: the rounds until then have nothing to write, and are no order.
    fn all_written(&self) -> Result<(), PublishError> {
        let after_s = self.config.raise_after_s;
        let patience =
            Duration::from_secs(2 * after_s) + Duration::from_secs(4 * self.config.publish_s.max(self.config.look_s));
        match self.unwritten {
            Some(at) if at.elapsed() < patience => Err(PublishError::Unwritten { after_s }),
            _ => Ok(()),
        }
    }

    fn note_heartbeat(&mut self) {
        let beaten = self.heartbeat.beat(self.shared.now());
        self.faults.note(
            "heartbeat",
            &beaten,
            |fault| warn!(fault, "the heartbeat is not written: the watchdog will lower limits"),
            |over| info!(lasted_s = over.lasted_s, "the heartbeat is written again"),
        );
    }

    /// A hook beside this connector reads its file, also while another one writes the limits.
    async fn note_quota_file(&mut self) {
        let offers = self.offers.borrow().clone();
        if self.config.mode != Mode::PublishAndHook || offers.asked_at.is_none() {
            return;
        }
        let written = match self.read(&offers).await {
            Ok(Some(read)) => self.write_quota_file(&read.stands, &read.held, &read.expected),
            Ok(None) => return,
            Err(fault) => Err(fault),
        };
        self.faults.note(
            "quota_file",
            &written,
            |fault| warn!(%fault, "the quota file is not written: the hook refuses spot jobs if that lasts"),
            |over| info!(lasted_s = over.lasted_s, "the quota file is written again"),
        );
    }

    fn write_quota_file(&self, limits: &ByName, held: &ByName, expected: &[Expected]) -> Result<(), PublishError> {
        let Some(path) = self.config.quota_file.get().filter(|_| self.config.mode == Mode::PublishAndHook) else {
            return Ok(());
        };
        let text = hook::text(&self.config, limits, held, expected, self.shared.now());
        let written = heartbeat::replace(path, text.as_bytes());
        written.map_err(|fault| PublishError::File(format!("quota_file: {}: {fault}", path.display())))
    }

    /// Limits that stand, GPUs that are held, and the limits that follow; none without a view of the cluster.
    async fn read(&mut self, offers: &Offers) -> Result<Option<Read>, PublishError> {
        // GPUs that are held are asked for now: jobs may have started since the last look.
        let stands = self.standing().await?;
        let tracked = self.site.tracked().await?;
        let Now { counting, queue, nodes, held } = look_now(&self.site, &self.config).await?;
        let (Some(_), Some(reading)) = (self.shared.view(), self.shared.reading()) else { return Ok(None) };
        let now = self.shared.now();
        // Of these very jobs: the view of before has others, and what began since would count as held outside of promises.
        let view = View::of(&queue, &nodes, &reading, now)?;
        let outside = counting.outside(&queue, &reading, now);
        let before = std::mem::take(&mut self.turns);
        let inputs = Inputs {
            config: &self.config,
            counting: &counting,
            view: &view,
            held: &held,
            outside: &outside,
            offers,
            tracked: &tracked,
            stands: &stands,
            turns: &before,
            now,
        };
        self.turns = before.clone().after(&inputs);
        let inputs = Inputs { turns: &self.turns, ..inputs };
        let (wanted, expected) = (inputs.wanted(), inputs.expected());
        Ok(Some(Read { stands, held, wanted, expected }))
    }

    /// 1. Read what stands and what is held, and think; 2. write, lower first, and read back; 3. beat.
    async fn keep_in_order(&mut self, offers: &Offers) -> Result<(), PublishError> {
        // 1.
        let Some(Read { stands, held, wanted, expected }) = self.read(offers).await? else { return Ok(()) };
        self.tell_lowered(&wanted);
        let planned = self.plan(&wanted, &stands);
        // 2. No limit is raised without a heartbeat: nobody could see that it ages.
        let beats = self.heartbeat.check().map_err(PublishError::File);
        let planned = if beats.is_ok() { planned } else { order::lower_alone(&stands, planned) };
        let mut is = stands;
        for step in steps(&is, &planned) {
            let written = self.write(&step, &mut is).await;
            self.unwritten = written.as_ref().err().map(|_| Instant::now());
            written?;
        }
        if stand(&wanted.limits, &is) {
            self.unwritten = None;
        }
        beats?;
        self.planner.wrote(&flat(&is));
        gauges(&is, &held);
        // 3. A limit above what was decided is no order.
        self.write_quota_file(&is, &held, &expected)?;
        self.heartbeat.beat(self.shared.now()).map_err(PublishError::File)
    }

    /// Limits that stand; each name of the settings has to be there.
    async fn standing(&self) -> Result<ByName, PublishError> {
        let stands = self.site.limits().await?;
        for (_, name) in self.config.limited().promised() {
            if !stands.contains_key(name) {
                let (key, what) = match self.config.nesting {
                    crate::config::Nesting::Qos => ("spot_qos", "QOS"),
                    crate::config::Nesting::Accounts => ("spot_accounts", "account"),
                };
                return Err(PublishError::Unknown { key, what, name: name.to_owned() });
            }
        }
        Ok(stands)
    }

    fn plan(&mut self, wanted: &Wanted, stands: &ByName) -> ByName {
        // Limits of resources that are not ours to set are left as they are.
        let mut ours = stands.clone();
        for (name, limits) in &mut ours {
            limits.retain(|tres, _| wanted.limits.get(name).is_some_and(|wanted| wanted.contains_key(tres)));
        }
        // Limits that rest on old offers are held to what stands where they are made.
        let basis = |_: &str| if wanted.is_offered { Basis::Known } else { Basis::Missing };
        let plan = self.planner.plan(Instant::now(), &flat(&wanted.limits), basis, &flat(&ours));
        for change in &plan.changes {
            info!(%change, "a limit changes");
        }
        nested(&plan.gpus)
    }

    async fn write(&self, step: &Step, is: &mut ByName) -> Result<(), PublishError> {
        if !self.may_write() {
            return Err(PublishError::Lease);
        }
        self.site.set_limits(&step.name, &step.limits).await?;
        metrics::counter!("headroom_slurm_writes_total").increment(1);
        let read = self.site.limits().await?.remove(&step.name).unwrap_or_default();
        for (tres, gpus) in &step.limits {
            if read.get(tres) != Some(gpus) {
                let (name, written) = (step.name.clone(), limits::argument(&step.limits));
                return Err(PublishError::ReadBack { name, read: limits::argument(&read), written });
            }
        }
        is.insert(step.name.clone(), read);
        Ok(())
    }

    fn tell_lowered(&mut self, wanted: &Wanted) {
        if wanted.lowered_because != self.lowered {
            if wanted.lowered_because.is_empty() {
                info!("limits follow the quota again");
            } else {
                warn!(because = wanted.lowered_because, "limits are held to what is promised");
            }
            self.lowered.clone_from(&wanted.lowered_because);
        }
    }
}

/// Whether all of these limits stand.
fn stand(wanted: &ByName, is: &ByName) -> bool {
    let all = wanted.iter().flat_map(|(name, limits)| limits.iter().map(move |(tres, gpus)| (name, tres, gpus)));
    all.into_iter().all(|(name, tres, gpus)| is.get(name).and_then(|is| is.get(tres)) == Some(gpus))
}

const BETWEEN: char = ' ';

/// Limits by one name: that of the limit and of the resource.
fn flat(limits: &ByName) -> connectors::plan::Gpus {
    let each = |(name, tres): (&String, &Tres)| {
        tres.iter().map(|(tres, gpus)| (format!("{name}{BETWEEN}{tres}"), *gpus)).collect::<Vec<_>>()
    };
    limits.iter().flat_map(each).collect()
}

fn nested(limits: &connectors::plan::Gpus) -> ByName {
    let mut all = ByName::new();
    for (name, gpus) in limits {
        if let Some((name, tres)) = name.split_once(BETWEEN) {
            all.entry(name.to_owned()).or_default().insert(tres.to_owned(), *gpus);
        }
    }
    all
}

fn gauges(limits: &ByName, held: &ByName) {
    let names: BTreeSet<&String> = limits.keys().collect();
    for name in names {
        for (tres, gpus) in &limits[name] {
            let labels = [("limit", name.clone()), ("tres", tres.clone())];
            metrics::gauge!("headroom_slurm_limit_gpus", &labels).set(*gpus as f64);
            metrics::gauge!("headroom_slurm_held_gpus", &labels).set(held::of(held, name, tres) as f64);
        }
    }
}
