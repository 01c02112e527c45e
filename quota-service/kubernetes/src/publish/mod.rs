//! Writes quotas into objects of Kueue and of the API server, while this replica leads.
//!
//! Nothing is written when the process ends: another replica takes the lease over within a retry, and quotas that fell for that
//! while would be low for `raise_after_s`. Where none takes it over the heartbeat stands still, and the
//! [watchdog](crate::watchdog) lowers what is published.

mod heartbeat;
pub(crate) mod hours;
mod kueue;
mod pace;
mod plan;
pub(crate) mod provider;
mod split;
pub(crate) mod target;
#[cfg(test)]
mod tests;
mod wanted;
mod write;

pub use heartbeat::{not_renewed, of as heartbeat_of};
pub use kueue::{NoTarget, target as kueue_target};
pub use plan::{Amounts, AtWill, Change, Gpus, Part, Plan, Planner, Rules, Wanted, Why};
pub use provider::{Form, form};
pub use split::split;
pub use target::{ALL, AT_WILL_QUOTA, Content, RESOURCE_QUOTA, Target, held_of};
pub use wanted::{want, wanted};
pub use write::write;

use crate::calls::{Calls, Fault};
use crate::config::{Config, Shares};
use crate::events::Events;
use crate::lead::{Epoch, Fence, stopped};
use heartbeat::Heartbeat;
use kube::Client;
use pace::Pace;
use serving::standing::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tracing::{info, warn};
use vocab::GpuModel;
use write::{Kept, Means, Stands, Wish};

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How the message of a quota begins that is lower than the last one of Headroom.
const LOWERED: &str = "lowered";
/// Least pause between two rounds.
const REST: Duration = Duration::from_secs(1);
/// A missing Kueue, or one that takes no quota, is searched for again after so many rounds.
const LOOKS_AGAIN_ROUNDS: u32 = 4;
/// Objects of others are read again after so many rounds.
const SET_ASIDE_ROUNDS: u32 = 10;

/// Publishes until `stop` is set. Each round reads, decides and writes; a lower quota starts one at once.
pub async fn run(
    client: Client,
    config: Arc<Config>,
    mut wanted: watch::Receiver<Arc<Wanted>>,
    mut lead: watch::Receiver<Option<Epoch>>,
    events: Events,
    mut stop: watch::Receiver<bool>,
) {
    let mut publisher = Publisher::new(client, &config, Fence::new(lead.clone()), events);
    loop {
        let wish = Arc::clone(&wanted.borrow_and_update());
        let mut leads = lead.clone();
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            // A round under way is dropped when the lead ends.
            _ = leads.wait_for(Option::is_none) => {}
            () = publisher.round(&wish) => {}
        }
        let rests = async {
            tokio::time::sleep(REST).await;
            tokio::select! {
                () = tokio::time::sleep(config.publish_every().saturating_sub(REST)) => {}
                Ok(()) = lead.changed() => {}
                Ok(_) = wanted.wait_for(|now| is_below(now, &wish)) => {}
            }
        };
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = rests => {}
        }
    }
}

/// Whether less is wanted of any model.
fn is_below(now: &Wanted, before: &Wanted) -> bool {
    let of =
        |wanted: &Wanted, model, part| wanted.by_model.get(model).map_or(0, |amounts: &Amounts| amounts.quota(part));
    let is_less =
        |model| [Part::Main, Part::AtWill].iter().any(|part| of(now, model, *part) < of(before, model, *part));
    now.is_known && before.by_model.keys().any(is_less)
}

/// When changes are written, as the settings say.
fn rules_of(config: &Config) -> Rules {
    Rules {
        least_change_gpus: config.least_change_gpus,
        least_change_ratio: config.least_change_ratio,
        raise_after: Duration::from_secs(config.raise_after_s),
        looks_within: config.publish_every() * 3,
    }
}

/// Published quotas after a round.
#[derive(Debug, Clone, Default)]
struct Order {
    /// Whether this replica may say so: no later epoch stands on them.
    is_ours: bool,
    /// Labels of those that it may not write: they may be above the decision.
    refused: BTreeSet<String>,
}

struct Publisher {
    calls: Calls,
    config: Arc<Config>,
    fence: Fence,
    rules: Rules,
    flavors: BTreeMap<String, GpuModel>,
    shares: Shares,
    kueue: Option<Kept>,
    /// Whether it carried the quota at the last look.
    is_kueue_in_order: bool,
    looks_for_kueue_at: Option<Instant>,
    quotas: BTreeMap<(String, Part), Kept>,
    pace: Pace,
    heartbeat: Heartbeat,
    events: Events,
    faults: Standing,
}

impl Publisher {
    fn new(client: Client, config: &Arc<Config>, fence: Fence, events: Events) -> Self {
        let rules = rules_of(config);
        let shares = if config.resource_quota { config.resource_quota_shares.clone() } else { Shares::default() };
        let parts: &[Part] = if config.is_apart() { &[Part::Main, Part::AtWill] } else { &[Part::Main] };
        let of = |namespace: &String, part| {
            ((namespace.clone(), part), Kept::new(Target::quota(config, namespace, part), rules))
        };
        let quotas = shares.0.keys().flat_map(|namespace| parts.iter().map(move |part| of(namespace, *part))).collect();
        Self {
            calls: Calls::new(client, ANSWERS_WITHIN),
            config: Arc::clone(config),
            fence,
            rules,
            flavors: config.flavors.0.clone(),
            quotas,
            shares,
            kueue: None,
            is_kueue_in_order: false,
            looks_for_kueue_at: None,
            pace: Pace::default(),
            heartbeat: Heartbeat::new(config),
            events,
            faults: Standing::new(),
        }
    }

    async fn round(&mut self, wanted: &Wanted) {
        let may_write = self.pace.may_write(Instant::now());
        if !wanted.is_known || !may_write || self.fence.epoch().is_none() {
            return;
        }
        let mut went = match self.find_kueue().await {
            Ok(()) => self.keep_in_order(wanted).await,
            Err(fault) => Err(fault),
        };
        // Only the leader beats, and only while no published quota but those that the beat names may be above the decision.
        if let (Ok(Order { is_ours: true, refused }), Some(epoch)) = (&went, self.fence.epoch()) {
            let beaten = self.heartbeat.beat(&self.calls, epoch, refused).await;
            self.faults.note(
                "heartbeat",
                &beaten,
                |fault| warn!(%fault, "the heartbeat is not written: the watchdog will lower quotas"),
                |over| info!(lasted_s = over.lasted_s, "the heartbeat is written again"),
            );
            went = beaten.map(|()| Order::default());
        }
        self.pace.note(Instant::now(), went.as_ref().map(|_| ()));
    }

    /// Answers what is in order; a fault that says to pause ends the round.
    async fn keep_in_order(&mut self, wanted: &Wanted) -> Result<Order, Fault> {
        let message = message(&self.config, wanted);
        let means = Means {
            calls: &self.calls,
            fence: &self.fence,
            events: &self.events,
            rules: self.rules,
            set_aside_for: self.config.publish_every() * SET_ASIDE_ROUNDS,
        };
        let (main, at_will) = (&self.flavors, &self.config.at_will_flavors.0);
        let mut gpus = wanted.by_flavor(Part::Main, main);
        gpus.extend(wanted.by_flavor(Part::AtWill, at_will));
        let mut held = wanted.held(Part::Main, main);
        held.extend(wanted.held(Part::AtWill, at_will));
        let mut looked = Vec::new();
        if let Some(kept) = &mut self.kueue {
            let mut basis = wanted.basis(main);
            basis.extend(wanted.basis(at_will));
            let wish = Wish { gpus: &gpus, held: &held, basis: &basis, message: &message };
            let went = kept.look(means, wish).await;
            self.is_kueue_in_order = went.0 == Stands::InOrder;
            looked.push((kept.target.label(), went));
        }
        let shares = [Part::Main, Part::AtWill].map(|part| (part, split(wanted.shared(part), &self.shares)));
        let shares = BTreeMap::from(shares);
        let basis = [(ALL.to_owned(), wanted.basis_in_all())].into();
        for ((namespace, part), kept) in &mut self.quotas {
            if let Some((_, (_, Some(fault @ (Fault::Throttled { .. } | Fault::Failed { .. }))))) = looked.last() {
                return Err(fault.clone());
            }
            let share = shares.get(part).and_then(|split| split.get(namespace)).copied().unwrap_or(0);
            let share = share + wanted.held_in(namespace, *part);
            let gpus = [(ALL.to_owned(), share)].into();
            let wish = Wish { gpus: &gpus, held: &Gpus::new(), basis: &basis, message: &message };
            looked.push((kept.target.label(), kept.look(means, wish).await));
        }
        let mut order = Order { is_ours: true, refused: BTreeSet::new() };
        for (label, (stands, fault)) in looked {
            match fault {
                Some(fault @ (Fault::Throttled { .. } | Fault::Failed { .. })) => return Err(fault),
                // A right that is missing in one namespace, as where that was deleted with its Role, is no reason to lower the others.
                Some(_) => _ = order.refused.insert(label),
                None => order.is_ours &= stands != Stands::Failed,
            }
        }
        Ok(order)
    }

    /// Finds once which object of Kueue it is, and looks again each minute while there is none, or while it takes no quota: another version
    /// of Kueue may have another form of it.
    async fn find_kueue(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        if self.kueue.is_some() && self.is_kueue_in_order || self.looks_for_kueue_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        let found = kueue_target(&self.calls, &self.config).await;
        self.looks_for_kueue_at = Some(now + self.config.publish_every() * LOOKS_AGAIN_ROUNDS);
        if let Some(kept) = &self.kueue {
            let is_other = matches!(&found, Ok(Some((target, _))) if *target != kept.target);
            if !is_other {
                return Ok(());
            }
        }
        let failed = match &found {
            Err(NoTarget::Call(fault)) => Some(fault.clone()),
            _ => None,
        };
        let found = self.tell_kueue(found);
        if let Some(fault) = failed {
            self.looks_for_kueue_at = None;
            return Err(fault);
        }
        self.kueue = found.map(|target| Kept::new(target, self.rules));
        if self.kueue.is_some() {
            self.tell_missing_flavors().await?;
        }
        Ok(())
    }

    fn tell_kueue(&self, found: Result<Option<(Target, &'static str)>, NoTarget>) -> Option<Target> {
        let begins = |fault: &NoTarget| warn!(%fault, "kueue gets no quota; it is checked again each minute");
        let over = |_| info!("kueue has an object for the quota now");
        let (target, went) = match found {
            Ok(found) => (found, Ok(())),
            Err(fault) => (None, Err(fault)),
        };
        self.faults.note("kueue", &went, begins, over);
        target.map(|(target, why)| {
            info!(target_object = target.label(), path = target.path(), why, "the quota of kueue is written here");
            target
        })
    }

    async fn tell_missing_flavors(&self) -> Result<(), Fault> {
        let missing = kueue::missing_flavors(&self.calls, &self.config).await?;
        if !missing.is_empty() {
            warn!(
                flavors = missing.join(", "),
                "there is no ResourceFlavor of this name: create it, or correct flavors"
            );
        }
        Ok(())
    }
}

fn message(config: &Config, wanted: &Wanted) -> String {
    let hours = config.quota_hours.0.get();
    if wanted.lowered_because.is_empty() {
        return format!("spot quota of Headroom, guaranteed for {hours} h");
    }
    // The condition stays true: see `Target::status`.
    format!("{LOWERED}, and to be held to: {}", wanted.lowered_because)
}
