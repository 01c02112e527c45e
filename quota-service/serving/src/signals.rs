//! Signals: stop (SIGINT, SIGTERM), and read files again (SIGHUP).

use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Counts the SIGHUPs of the process: each asks it to read its files again.
#[must_use]
pub fn reloads() -> watch::Receiver<u64> {
    let (sender, reloads) = watch::channel(0);
    tokio::spawn(async move {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { return std::future::pending().await };
        while hangup.recv().await.is_some() {
            sender.send_modify(|count| *count += 1);
        }
    });
    reloads
}

/// Becomes `true` at SIGINT or SIGTERM. If the process still runs after `grace`, it is ended, with
/// exit code 0. The signal and the time are watched on a thread of their own: a computation that holds every other thread
/// delays neither.
///
/// # Errors
/// The system gives no thread, or no signals.
pub fn stop_within(grace: Duration) -> std::io::Result<watch::Receiver<bool>> {
    let (sender, stop) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watching = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        sender.send_replace(true);
        tokio::time::sleep(grace).await;
        tracing::warn!(grace_s = grace.as_secs(), "the program did not stop within its grace period: exiting");
        std::process::exit(0);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watching))?;
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    /// Set in the process whose threads are all held.
    const HELD: &str = "HEADROOM_TEST_HELD";

    /// A program like ours: all of its threads compute when it receives SIGTERM.
    fn hold_every_thread() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let ended = runtime.block_on(async {
            let mut stop = stop_within(Duration::from_millis(700)).unwrap();
            for _ in 0..4 {
                tokio::spawn(async { std::thread::sleep(Duration::from_mins(1)) });
            }
            tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_mins(1)));
            println!("held");
            stop.wait_for(|stops| *stops).await.is_ok()
        });
        assert!(ended);
    }

    #[test]
    fn a_program_whose_threads_are_all_held_ends_within_its_grace_period() {
        if std::env::var_os(HELD).is_some() {
            return hold_every_thread();
        }
        let name = "signals::tests::a_program_whose_threads_are_all_held_ends_within_its_grace_period";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(HELD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("held")), "it begins");
        let signalled = Instant::now();
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        let ended = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if signalled.elapsed() > Duration::from_secs(10) => {
                    child.kill().unwrap();
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!(ended, Some(0), "after {:?}", signalled.elapsed());
        assert!(signalled.elapsed() >= Duration::from_millis(600), "it had its grace period");
    }
}
