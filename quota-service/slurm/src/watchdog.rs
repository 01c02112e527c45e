//! Lowers limits to the GPUs that jobs hold, when nobody renews them any more.
//!
//! Slurm itself would go on to start what waits under old limits, also where submissions are refused: so this has to be a process
//! of its own, or a timer.

use crate::config::Config;
use crate::heartbeat::{self, Noted};
use crate::limits::{ByName, Tres};
use crate::publish::{held, held_now};
use crate::run::{RunError, announce, listen, start_log};
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
use tracing::warn;
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

/// Lowers what stands above what is held, and answers it.
///
/// # Errors
/// Slurm does not answer, or a limit was not set.
pub async fn lower(site: &Site, config: &Config) -> Result<ByName, RecordsError> {
    let stands = site.limits().await?;
    let (_, held) = held_now(site, config).await?;
    let lowered = lowered(&stands, &held);
    // Each is tried: a fault of one does not stop the others.
    let mut went = Ok(());
    for (name, limits) in &lowered {
        went = went.and(site.set_limits(name, limits).await);
    }
    went?;
    let stands = site.limits().await?;
    for (name, limits) in &lowered {
        for (tres, gpus) in limits {
            if stands.get(name).and_then(|stands| stands.get(tres)).is_none_or(|stands| stands > gpus) {
                let detail = format!("the limit {tres} of {name} is still above {gpus}");
                return Err(RecordsError::Command { command: "sacctmgr modify".to_owned(), detail, may_pass: true });
            }
        }
    }
    metrics::counter!("headroom_slurm_watchdog_lowered_total").increment(lowered.len() as u64);
    Ok(lowered)
}

/// Where the watchdog keeps what it saw, beside the heartbeat.
fn note_of(heartbeat: &Path) -> PathBuf {
    let mut name = heartbeat.as_os_str().to_owned();
    name.push(".seen");
    PathBuf::from(name)
}

/// Looks at the heartbeat, and notes it; answers for how long it has stood still.
fn look(path: &Path, now: UnixSeconds) -> Result<Duration, String> {
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
    Ok(Duration::from_secs(u64::try_from(age_s).unwrap_or(0)))
}

/// One look: lowers where the heartbeat is old. Answers what was lowered; none where it beats.
async fn look_and_lower(site: &Site, config: &Config) -> Result<Option<ByName>, String> {
    let path = config.heartbeat_file.get().unwrap_or(Path::new(""));
    let age = look(path, clock::now())?;
    if age < Duration::from_secs(config.watchdog_after_s) {
        return Ok(None);
    }
    let lowered = lower(site, config).await.map_err(|fault| fault.to_string())?;
    for (name, limits) in &lowered {
        warn!(limit = name, ?limits, age_s = age.as_secs(), "limit lowered: the heartbeat stands still");
    }
    Ok(Some(lowered))
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
    let site = Site::new(&config);
    if once {
        let lowered = look_and_lower(&site, &config).await;
        let lowered = lowered.map_err(|fault| Failure::new(Exit::Unavailable, fault))?;
        if json {
            say(serde_json::json!({ "beats": lowered.is_none(), "lowered": lowered.unwrap_or_default() }));
        } else {
            match lowered {
                None => say("the heartbeat is young enough"),
                Some(lowered) => say(format_args!("{} limits were lowered", lowered.len())),
            }
        }
        return Ok(());
    }
    let (stopper, stop) = watch::channel(false);
    let (address, serving) = listen(&config, Arc::new(|| Ok(())), stop.clone()).await?;
    announce(address, &config, json);
    let mut signalled = stop_within(ENDS_WITHIN).map_err(RunError::Signals)?;
    tokio::select! {
        _ = signalled.wait_for(|stops| *stops) => {}
        () = watch_on(&site, &config) => {}
    }
    stopper.send_replace(true);
    let _ = tokio::time::timeout(ENDS_WITHIN / 2, serving).await;
    Ok(())
}

/// Looks again and again. Never returns.
async fn watch_on(site: &Site, config: &Config) {
    let standing = Standing::new();
    loop {
        let went = look_and_lower(site, config).await.map(drop);
        standing.note(
            "",
            &went,
            |fault| warn!(fault, "the watchdog cannot read the heartbeat or lower limits"),
            |over| tracing::info!(lasted_s = over.lasted_s, "the watchdog works again"),
        );
        tokio::time::sleep(Duration::from_secs(config.watchdog_check_s)).await;
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
        let at = |second: i64| look(&path, UnixSeconds::new(1_000_000 + second)).unwrap().as_secs();
        assert_eq!([at(0), at(60)], [0, 60], "one that was never there");
        let mut heart = heartbeat::Heartbeat::new(&path, "one".to_owned());
        heart.beat(UnixSeconds::new(5)).unwrap();
        assert_eq!([at(70), at(100)], [0, 30]);
        heart.beat(UnixSeconds::new(5)).unwrap();
        assert_eq!(at(110), 0);
        assert_eq!([at(50), at(110)], [0, 60], "a clock that was set back");
    }
}
