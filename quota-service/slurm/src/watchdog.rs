//! Lowers limits to the GPUs that jobs hold, when nobody renews them any more.
//!
//! Slurm itself would go on to start what waits under old limits, also where submissions are refused: so this has to be a process
//! of its own, or a timer.

use crate::config::Config;
use crate::heartbeat::{self, Noted};
use crate::lease::{Fence, Turn};
use crate::limits::{ByName, Tres};
use crate::publish::{held, held_now};
use crate::run::{RunError, announce, headroom, listen, start_log};
use crate::site::Site;
use command_line::{Exit, Failure, say};
use connectors::clock;
use serving::signals::stop_within;
use serving::standing::Standing;
use slurm_records::RecordsError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing::{info, warn};
use vocab::UnixSeconds;

/// End of the process after a stop signal.
const ENDS_WITHIN: Duration = Duration::from_secs(8);

/// Limits above what is held, as they are lowered. Those that are not set were not published by us.
#[must_use]
pub fn lowered(stands: &ByName, held: &ByName) -> ByName {
    let lower = |(name, limits): (&String, &Tres)| {
        let above = limits.iter().map(|(tres, gpus)| (tres, *gpus, held::of(held, name, tres)));
        let above: Tres =
            above.filter(|(_, gpus, held)| gpus > held).map(|(tres, _, held)| (tres.clone(), held)).collect();
        (!above.is_empty()).then(|| (name.clone(), above))
    };
    stands.iter().filter_map(lower).collect()
}

/// Lowers limits, and reads them back.
///
/// # Errors
/// Slurm does not answer, or a limit was not set.
async fn lower(site: &Site, lowered: &ByName) -> Result<(), RecordsError> {
    // Each is tried: a fault of one does not stop the others.
    let mut went = Ok(());
    for (name, limits) in lowered {
        went = went.and(site.set_limits(name, limits).await);
    }
    went?;
    let stands = site.limits().await?;
    for (name, limits) in lowered {
        for (tres, gpus) in limits {
            if stands.get(name).and_then(|stands| stands.get(tres)).is_none_or(|stands| stands > gpus) {
                let detail = format!("the limit {tres} of {name} is still above {gpus}");
                return Err(RecordsError::Command { command: "sacctmgr modify".to_owned(), detail, may_pass: true });
            }
        }
    }
    metrics::counter!("headroom_slurm_watchdog_lowered_total").increment(lowered.len() as u64);
    Ok(())
}

/// Where the watchdog keeps what it saw, beside the heartbeat.
fn note_of(heartbeat: &Path) -> PathBuf {
    let mut name = heartbeat.as_os_str().to_owned();
    name.push(".seen");
    PathBuf::from(name)
}

/// Looks at the heartbeat, and notes it; answers for how long it has stood still, and its writer.
fn look(path: &Path, now: UnixSeconds) -> Result<(Duration, String), String> {
    let file = note_of(path);
    let before: Option<Noted> = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    // A file that is none stands still like one that is not there.
    let beat = heartbeat::read(path).unwrap_or_else(|fault| {
        warn!(fault, "the heartbeat cannot be read: it counts as missing");
        None
    });
    let noted = heartbeat::noted(before.as_ref(), beat, now);
    if before.as_ref() != Some(&noted) {
        let text = serde_json::to_vec(&noted).map_err(|fault| fault.to_string())?;
        heartbeat::replace(&file, &text).map_err(|fault| format!("heartbeat_file: {}: {fault}", file.display()))?;
    }
    let age_s = now.get().saturating_sub(noted.since_unix_s);
    metrics::gauge!("headroom_slurm_heartbeat_age_seconds").set(age_s as f64);
    let writer = noted.beat.map(|beat| beat.writer).unwrap_or_default();
    Ok((Duration::from_secs(u64::try_from(age_s).unwrap_or(0)), writer))
}

/// Result of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Looked {
    /// The heartbeat is young.
    Beats,
    /// It is old, and another connector, of this name, publishes: limits are its business.
    Elsewhere(String),
    /// It is old: these limits were lowered.
    Lowered(ByName),
}

/// A watchdog with its cluster.
struct Watchdog {
    site: Site,
    config: Config,
    /// None without a name of the cluster.
    fence: Option<Fence>,
}

impl Watchdog {
    fn new(config: Config) -> Result<Self, RunError> {
        let fence = match config.cluster() {
            Ok(cluster) => Some(Fence {
                headroom: headroom(&config)?,
                cluster: cluster.clone(),
                holder: format!("watchdog-{}", config.identity()),
                lease: Duration::from_secs(config.lease_s),
            }),
            Err(_) => None,
        };
        Ok(Self { site: Site::new(&config), config, fence })
    }

    /// One look: lowers where the heartbeat is old and no other connector publishes.
    async fn look_and_lower(&self) -> Result<Looked, String> {
        let path = self.config.heartbeat_file.get().unwrap_or(Path::new(""));
        let (age, writer) = look(path, clock::now())?;
        if age < Duration::from_secs(self.config.watchdog_after_s) {
            return Ok(Looked::Beats);
        }
        let in_words = |fault: RecordsError| fault.to_string();
        let stands = self.site.limits().await.map_err(in_words)?;
        let held = held_now(&self.site, &self.config).await.map_err(in_words)?;
        let lowered = lowered(&stands, &held);
        if lowered.is_empty() {
            return Ok(Looked::Lowered(lowered));
        }
        let turn = match &self.fence {
            Some(fence) => fence.take().await,
            None => Turn::Unknown,
        };
        match &turn {
            // The lease of the connector whose heartbeat this is may outlast it.
            Turn::Theirs(holder) if *holder != writer => return Ok(Looked::Elsewhere(holder.clone())),
            Turn::Ours | Turn::Theirs(_) | Turn::Unknown => {}
        }
        let went = lower(&self.site, &lowered).await.map_err(in_words);
        if let (Turn::Ours, Some(fence)) = (turn, &self.fence) {
            fence.give_back().await;
        }
        went?;
        for (name, limits) in &lowered {
            warn!(limit = name, ?limits, age_s = age.as_secs(), "limit lowered: the heartbeat stands still");
        }
        Ok(Looked::Lowered(lowered))
    }

    /// Looks again and again. Never returns.
    async fn watch_on(&self) {
        let (standing, mut publisher) = (Standing::new(), String::new());
        loop {
            let looked = self.look_and_lower().await;
            if let Ok(Looked::Elsewhere(holder)) = &looked
                && *holder != publisher
            {
                info!(holder, "the heartbeat stands still, and another connector publishes: its limits stay");
                publisher.clone_from(holder);
            }
            standing.note(
                "",
                &looked.map(drop),
                |fault| warn!(fault, "the watchdog cannot read the heartbeat or lower limits"),
                |over| info!(lasted_s = over.lasted_s, "the watchdog works again"),
            );
            tokio::time::sleep(Duration::from_secs(self.config.watchdog_check_s)).await;
        }
    }
}

/// Runs the watchdog; with `once`, one look.
///
/// # Errors
/// The log or the address cannot be used, or, with `once`, the look failed.
pub async fn run(config: Config, once: bool, json: bool) -> Result<(), Failure> {
    start_log(&config)?;
    if config.limited().promised().is_empty() {
        return Err(Failure::new(
            Exit::ConfigInvalid,
            "spot_qos: no limit is set here: write those that headroom-slurm run writes",
        ));
    }
    let watchdog = Watchdog::new(config)?;
    if once {
        let looked = watchdog.look_and_lower().await.map_err(|fault| Failure::new(Exit::Unavailable, fault))?;
        print(&looked, json);
        return Ok(());
    }
    let (stopper, stop) = watch::channel(false);
    let (address, serving) = listen(&watchdog.config, Arc::new(|| Ok(())), stop.clone()).await?;
    announce(address, &watchdog.config, json);
    let mut signalled = stop_within(ENDS_WITHIN).map_err(RunError::Signals)?;
    tokio::select! {
        _ = signalled.wait_for(|stops| *stops) => {}
        () = watchdog.watch_on() => {}
    }
    stopper.send_replace(true);
    let _ = tokio::time::timeout(ENDS_WITHIN / 2, serving).await;
    Ok(())
}

fn print(looked: &Looked, json: bool) {
    let (holder, lowered) = match looked {
        Looked::Beats => (None, None),
        Looked::Elsewhere(holder) => (Some(holder), None),
        Looked::Lowered(lowered) => (None, Some(lowered)),
    };
    if json {
        let lowered = lowered.cloned().unwrap_or_default();
        say(serde_json::json!({ "beats": *looked == Looked::Beats, "published_by": holder, "lowered": lowered }));
    } else if let Some(lowered) = lowered {
        say(format_args!("{} limits were lowered", lowered.len()));
    } else if let Some(holder) = holder {
        say(format_args!("the heartbeat stands still, and another connector publishes: {holder}"));
    } else {
        say("the heartbeat is young enough");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_above_what_is_held_are_lowered_to_it_and_others_are_left() {
        let tres = |list: &[(&str, u64)]| list.iter().map(|(name, gpus)| ((*name).to_owned(), *gpus)).collect::<Tres>();
        let stands: ByName = [
            ("spot1h".to_owned(), tres(&[("gres/gpu", 12), ("gres/gpu:a100", 6)])),
            ("spot4h".to_owned(), tres(&[("gres/gpu", 0)])),
            ("unset".to_owned(), Tres::new()),
        ]
        .into();
        let held: ByName = [("spot1h".to_owned(), tres(&[("gres/gpu", 6), ("gres/gpu:a100", 6)]))].into();
        assert_eq!(lowered(&stands, &held), [("spot1h".to_owned(), tres(&[("gres/gpu", 6)]))].into());
    }

    #[test]
    fn a_heartbeat_ages_between_calls_and_is_young_again_once_it_beats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heartbeat");
        let at = |second: i64| look(&path, UnixSeconds::new(1_000_000 + second)).unwrap().0.as_secs();
        assert_eq!([at(0), at(60)], [0, 60], "one that was never there");
        let mut heart = heartbeat::Heartbeat::new(&path, "one".to_owned());
        heart.beat(UnixSeconds::new(5)).unwrap();
        assert_eq!([at(70), at(100)], [0, 30]);
        heart.beat(UnixSeconds::new(5)).unwrap();
        assert_eq!(at(110), 0);
        assert_eq!([at(50), at(110)], [0, 60], "a clock that was set back");
    }
}
