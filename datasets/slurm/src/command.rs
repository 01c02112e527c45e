//! Slurm's programs, each with a time limit: where the controller is gone, they would wait for minutes.

use crate::error::RecordsError;
use crate::form::Form;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest part of what a program prints on stderr that is repeated.
const MOST_WORDS: usize = 500;
/// Time beyond the limit after which `timeout` ends a write of a program that was killed.
const WRITE_BEYOND: Duration = Duration::from_millis(500);
/// Between two looks at whether a program has ended.
const LOOKS_EACH: Duration = Duration::from_millis(5);

/// Where Slurm's programs are, and how long each may take.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Their folder; empty for the search path.
    pub folder: PathBuf,
    /// Slurm's settings file (`SLURM_CONF`); none for its usual place.
    pub conf: Option<PathBuf>,
    /// Time limit of each.
    pub limit: Duration,
}

impl Programs {
    /// In a folder, or on the search path where it is empty.
    #[must_use]
    pub fn new(folder: &Path, limit: Duration) -> Self {
        Self { folder: folder.to_owned(), conf: None, limit }
    }

    /// The same with another settings file, where one is named.
    #[must_use]
    pub fn with_conf(self, conf: Option<&Path>) -> Self {
        Self { conf: conf.map(Path::to_owned), ..self }
    }

    /// The same with another time limit.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { limit, ..self.clone() }
    }

    /// Runs a program and reads its output while it comes.
    ///
    /// # Errors
    /// It cannot be started, takes too long, or fails; or what `read` answers.
    pub fn read<T>(
        &self,
        program: &str,
        arguments: &[&str],
        read: impl FnOnce(&str, &mut dyn Read) -> Result<T, RecordsError>,
    ) -> Result<T, RecordsError> {
        let line = [&[program], arguments].concat().join(" ");
        let failed = |detail: String, may_pass| RecordsError::Command { command: line.clone(), detail, may_pass };
        // Without its file a program asks the network for one, for longer than its time.
        if let Some(conf) = self.conf.as_ref().filter(|conf| !conf.exists()) {
            return Err(failed(format!("there is no file {}: correct the setting slurm_conf", conf.display()), false));
        }
        let mut running = Running::start(self, &self.folder.join(program), arguments).map_err(|fault| {
            failed(format!("cannot be started: {fault}; is it installed, and is its folder set?"), false)
        })?;
        let mut output = running.output.take().expect("its output was asked for");
        let answer = read(&line, &mut output);
        drop(output);
        let (status, words) = running.end();
        match status {
            None => Err(failed(
                format!("no answer within {} s: is the daemon that it asks there? It was ended", self.limit.as_secs()),
                true,
            )),
            Some(status) if !status.success() => Err(failed(format!("{status}{}", worded(&words)), true)),
            Some(_) => answer,
        }
    }

    /// Runs a program and answers its output as text.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn text(&self, program: &str, arguments: &[&str]) -> Result<String, RecordsError> {
        self.read(program, arguments, read_text)
    }

    /// Runs a program that writes. It ends by itself after [`Self::write_within`], also where this process is gone by then: an
    /// orphan must not write under a lease that is over.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn write(&self, program: &str, arguments: &[&str]) -> Result<(), RecordsError> {
        let (within, path) = (format!("{}s", self.write_within().as_secs_f64()), self.folder.join(program));
        let path = path.to_string_lossy();
        let bounded = Self { folder: PathBuf::new(), ..self.clone() };
        bounded.text("timeout", &[&["--signal=KILL", &within, &path], arguments].concat()).map(drop)
    }

    /// Longest time from the start of a write to its end.
    #[must_use]
    pub const fn write_within(&self) -> Duration {
        self.limit.saturating_add(WRITE_BEYOND)
    }

    /// Release of Slurm, as `(22, 5)`.
    ///
    /// # Errors
    /// As [`Self::read`], or the answer is no release.
    pub fn release(&self) -> Result<(u32, u32), RecordsError> {
        let text = self.text("squeue", &["--version"])?;
        let release = text.split_whitespace().find_map(|word| {
            let mut parts = word.split('.').map(str::parse::<u32>);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        });
        release.ok_or_else(|| RecordsError::Command {
            command: "squeue --version".to_owned(),
            detail: format!("{:?} is no release such as slurm 22.05.8", text.trim()),
            may_pass: false,
        })
    }

    /// The form in which this Slurm is asked to print, and the argument for it.
    ///
    /// # Errors
    /// As [`Self::release`], or this Slurm is too old.
    pub fn form(&self) -> Result<(Form, &'static str), RecordsError> {
        let (major, minor) = self.release()?;
        Form::of_release(major, minor).ok_or_else(|| RecordsError::Command {
            command: "squeue --version".to_owned(),
            detail: format!("Slurm {major}.{minor:02} is not known: expected 22.05 to 26.05, or newer"),
            may_pass: false,
        })
    }
}

fn read_text(place: &str, from: &mut dyn Read) -> Result<String, RecordsError> {
    let mut text = Vec::new();
    let read = from.read_to_end(&mut text);
    read.map_err(|source| RecordsError::Io { place: place.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Words of stderr, shortened, after a colon.
fn worded(words: &str) -> String {
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() { words } else { format!(": {}", words.chars().take(MOST_WORDS).collect::<String>()) }
}

/// A program that runs, with a guard that ends it, and all that it started, when its time is over.
struct Running {
    child: Child,
    output: Option<ChildStdout>,
    words: std::fs::File,
    done: Sender<()>,
    guard: JoinHandle<bool>,
}

impl Running {
    fn start(programs: &Programs, program: &Path, arguments: &[&str]) -> std::io::Result<Self> {
        // A file and no pipe: a program that prints much there must not wait for us.
        let words = tempfile::tempfile()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(words.try_clone()?);
        // Lists of array tasks are not cut off; times that are asked for are UTC.
        command.env("SLURM_BITSTR_LEN", "0").env("TZ", "UTC0").process_group(0);
        if let Some(conf) = &programs.conf {
            command.env("SLURM_CONF", conf);
        }
        let mut child = command.spawn()?;
        let limit = programs.limit;
        let output = child.stdout.take();
        let group = Pid::from_child(&child);
        let (done, ended) = channel();
        let guard = std::thread::spawn(move || guard(group, &ended, limit));
        Ok(Self { child, output, words, done, guard })
    }

    /// Its status, where it ended in time, and what it printed on stderr.
    fn end(mut self) -> (Option<ExitStatus>, String) {
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) => std::thread::sleep(LOOKS_EACH),
                Err(_) => break None,
            }
        };
        let _ = self.done.send(());
        let was_cut = self.guard.join().unwrap_or(true);
        let mut words = Vec::new();
        let read = self.words.seek(SeekFrom::Start(0)).and_then(|_| self.words.read_to_end(&mut words));
        let words = read.map(|_| String::from_utf8_lossy(&words).into_owned()).unwrap_or_default();
        (status.filter(|_| !was_cut), words)
    }
}

/// Ends a group of processes after its time, if nobody says before that it is done. Answers whether it did.
fn guard(group: Pid, ended: &Receiver<()>, limit: Duration) -> bool {
    let is_late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
    if is_late {
        // It may have ended in this moment, which is as good.
        let _ = kill_process_group(group, Signal::KILL);
    }
    is_late
}
