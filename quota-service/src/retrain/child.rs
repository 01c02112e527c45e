//! The program `train` as a child: at a low priority, within a limit, ended with the service.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Beside the service's own executable, where the setting names none.
const PROGRAM: &str = "train";
/// Runs programs that others may push aside.
const NICE: &str = "nice";
const NICENESS: &str = "10";
/// How often to look whether it has ended.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// The last output is in a pipe when the program ends; a child of it may hold that open.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
/// Kept bytes of the output: its end has the reason of a failure.
const LAST_WORDS_BYTES: usize = 2_000;

/// The program that is started: the one that the setting names, or `train` beside this program.
///
/// # Errors
/// There is no program.
pub fn program(setting: Option<&Path>) -> Result<PathBuf, String> {
    let path = if let Some(path) = setting {
        path.to_path_buf()
    } else {
        let here =
            std::env::current_exe().map_err(|fault| format!("this program does not know its folder: {fault}"))?;
        here.with_file_name(PROGRAM)
    };
    let remedy = "write the path of the program train, or retrain = \"never\"";
    match path.metadata() {
        Err(fault) => Err(format!("{} cannot be started: {fault}; {remedy}", path.display())),
        Ok(found) if !found.is_file() || found.permissions().mode() & 0o111 == 0 => {
            Err(format!("{} is no program; {remedy}", path.display()))
        }
        Ok(_) => Ok(path),
    }
}

/// How a training ended.
#[derive(Debug)]
pub enum Outcome {
    Exit(i32),
    /// A signal ended it, or it could not be started or watched.
    Broken(String),
    TooLong(Duration),
    /// With the service.
    Stopped,
}

impl Outcome {
    /// The exit code; −1 where there is none.
    pub const fn code(&self) -> i32 {
        if let Self::Exit(code) = self { *code } else { -1 }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Broken(why) => f.write_str(why),
            Self::TooLong(limit) => write!(f, "ended after {} s, the limit", limit.as_secs()),
            Self::Stopped => f.write_str("stopped with the service"),
        }
    }
}

/// A training to run.
pub struct Task<'a> {
    pub program: &'a Path,
    pub arguments: &'a [String],
    /// Handed over in the environment: everyone may read a command line.
    pub database: &'a str,
    pub within: Duration,
}

impl Task<'_> {
    /// Runs it to its end, or to the end of its time or of the service. Returns its last output, too.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) -> (Outcome, String) {
        let mut child = match self.spawn() {
            Ok(child) => Guard(child),
            Err(fault) => return (Outcome::Broken(format!("it does not start: {fault}")), String::new()),
        };
        let words = LastWords::of(child.0.stderr.take());
        let started = Instant::now();
        let outcome = loop {
            match child.0.try_wait() {
                Ok(Some(status)) => {
                    break status.code().map_or_else(|| Outcome::Broken(status.to_string()), Outcome::Exit);
                }
                Ok(None) if started.elapsed() >= self.within => break Outcome::TooLong(self.within),
                Ok(None) => {}
                Err(fault) => break Outcome::Broken(format!("it cannot be watched: {fault}")),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOKS_EVERY) => {}
                _ = stop.wait_for(|stopped| *stopped) => break Outcome::Stopped,
            }
        };
        drop(child);
        (outcome, words.end().await)
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut nice = Command::new(NICE);
        nice.args(["-n", NICENESS]).arg(self.program);
        match self.start(&mut nice) {
            // A machine without it: then at the priority of the service.
            Err(fault) if fault.kind() == ErrorKind::NotFound => self.start(&mut Command::new(self.program)),
            started => started,
        }
    }

    fn start(&self, command: &mut Command) -> std::io::Result<Child> {
        command
            .args(self.arguments)
            .env_remove("DATABASE_URL")
            .env("HEADROOM_DATABASE", self.database)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    }
}

/// A child that does not outlive this value.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The end of what a child says, read on a thread of its own: a full pipe would stop it.
struct LastWords {
    output: Arc<Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl LastWords {
    fn of(stderr: Option<ChildStderr>) -> Self {
        let output = Arc::new(Mutex::new(Vec::new()));
        let kept = output.clone();
        let reader = stderr.map(|pipe| std::thread::spawn(move || read_end(pipe, &kept)));
        Self { output, reader }
    }

    async fn end(self) -> String {
        let until = Instant::now() + LAST_WORDS_WITHIN;
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&output).trim().to_owned()
    }
}

fn read_end(mut pipe: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4_096];
    while let Ok(count @ 1..) = pipe.read(&mut chunk) {
        let mut output = kept.lock().unwrap_or_else(PoisonError::into_inner);
        output.extend(&chunk[..count]);
        let too_many = output.len().saturating_sub(LAST_WORDS_BYTES);
        output.drain(..too_many);
    }
}
