//! A real Slurm, where it is installed: munged, MariaDB, slurmdbd, slurmctld and four slurmd of a temporary folder.

use crate::workspace_root;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Set where a machine without Slurm is a fault of the machine.
const REQUIRED: &str = "HEADROOM_SLURM_REQUIRED";
/// Programs that have to be there.
const PROGRAMS: [&str; 7] = ["munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sbatch"];
/// Attempts: between the choice of ports and their use another program may take one.
const ATTEMPTS: usize = 3;
/// Time for what has to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A cluster of two nodes with eight a100 each and two with eight h100. It ends with this value, and with the test process.
pub struct Slurm {
    /// Its supervisor, which ends all of it when its standard input ends.
    supervisor: Child,
    folder: TempDir,
}

/// Two clusters for all tests: one takes seconds to start, and tests mostly wait. A test has one alone, and cleans up behind itself.
static SHARED: [Mutex<Option<Slurm>>; 2] = [const { Mutex::new(None) }; 2];

/// A shared cluster, for one test.
pub struct Lent(MutexGuard<'static, Option<Slurm>>);

impl std::ops::Deref for Lent {
    type Target = Slurm;

    fn deref(&self) -> &Slurm {
        self.0.as_ref().expect("it was started before it was lent")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.clean();
    }
}

/// Programs that are not installed.
fn missing() -> Vec<&'static str> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let is_there = |program: &&str| path.split(':').any(|folder| Path::new(folder).join(program).exists());
    PROGRAMS.into_iter().filter(|program| !is_there(program)).collect()
}

/// Lends a shared cluster. Where Slurm is not installed, a line says that `what` was not tested.
///
/// # Panics
/// It does not start; or it is not installed, and `HEADROOM_SLURM_REQUIRED` is set.
#[must_use]
pub fn slurm(what: &str) -> Option<Lent> {
    let missing = missing().join(", ");
    if !missing.is_empty() {
        assert!(
            std::env::var_os(REQUIRED).is_none(),
            "{REQUIRED} is set, and there is no {missing}: run tests/with-programs.sh, which installs them, or see its message"
        );
        println!("not run, since Slurm is not installed (no {missing}): {what}");
        return None;
    }
    let mut shared = free();
    if shared.is_none() {
        *shared = Some(Slurm::start());
    }
    Some(Lent(shared))
}

/// Waits for a place of which no test has the cluster.
fn free() -> MutexGuard<'static, Option<Slurm>> {
    loop {
        for place in &SHARED {
            match place.try_lock() {
                Ok(free) => return free,
                // Cleaned up, too: that is done whether the test failed or not.
                Err(TryLockError::Poisoned(free)) => return free.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Ports that were free a moment ago, all different.
fn free_ports(count: usize) -> Vec<String> {
    let bound: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port is free")).collect();
    bound.iter().map(|port| port.local_addr().expect("it has an address").port().to_string()).collect()
}

impl Slurm {
    fn start() -> Self {
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix("headroom-slurm.").tempdir().expect("a temporary folder");
            let script = workspace_root().join("tests/slurm/cluster.sh");
            let mut command = Command::new(script);
            command.arg(folder.path()).args(free_ports(6)).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut supervisor = command.spawn().expect("the script starts");
            let mut line = String::new();
            let output = supervisor.stdout.take().expect("its output was asked for");
            let read = BufReader::new(output).read_line(&mut line);
            if read.is_ok() && line.trim() == "ready" {
                let slurm = Self { supervisor, folder };
                slurm.set_up();
                return slurm;
            }
            let _ = supervisor.wait();
        }
        panic!("Slurm does not start: see the lines above")
    }

    /// Accounts, QOS and users: HP in `normal`, spot in `spot1h` and `spot4h`, which it may evict.
    fn set_up(&self) {
        let who = String::from_utf8(Command::new("id").arg("-un").output().expect("id runs").stdout).expect("a name");
        for line in [
            "add account research engineering spot",
            "add account vision parent=research",
            "add account spot-4h parent=spot",
            "add qos spot1h spot4h",
            "modify qos normal set priority=100 preempt=spot1h,spot4h",
            "modify qos spot1h set priority=1",
            "modify qos spot4h set priority=4",
            &format!(
                "add user {} account=research,engineering,vision,spot,spot-4h defaultaccount=research qos=normal,spot1h,spot4h",
                who.trim()
            ),
        ] {
            let arguments: Vec<&str> = ["-i"].into_iter().chain(line.split(' ')).collect();
            let _ = self.run("sacctmgr", &arguments);
        }
    }

    /// Ends all jobs and takes limits away.
    fn clean(&self) {
        // A test that failed may have left it as it stood.
        self.pause_accounting(false);
        let jobs = || self.try_run("squeue", &["--noheader"]).unwrap_or_default();
        if !jobs().trim().is_empty() {
            // Waiting ones first: they would start where others end.
            let _ = self.try_run("scancel", &["--quiet", "--full", "--state=PENDING"]);
            let _ = self.try_run("scancel", &["--quiet", "--full"]);
            let _ = self
                .try_run("bash", &["-c", "squeue --noheader --format=%A | xargs --no-run-if-empty scancel --quiet"]);
            let start = Instant::now();
            while !jobs().trim().is_empty() && start.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        let none = "GrpTRES=gres/gpu=-1,gres/gpu:a100=-1,gres/gpu:h100=-1";
        let free = ["set", none, "preemptexempttime=0", "gracetime=0"];
        let _ = self.try_run("sacctmgr", &[&["-i", "modify", "qos", "spot1h,spot4h"], &free[..]].concat());
        let _ = self.try_run("sacctmgr", &[&["-i", "modify", "account", "spot,spot-4h"], &free[..2]].concat());
        let _ = std::fs::remove_file(self.folder.path().join("quota"));
    }

    /// Path of a file of the cluster.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// Path of its settings.
    #[must_use]
    pub fn conf(&self) -> String {
        self.path("etc/slurm.conf")
    }

    /// Output of a program of Slurm.
    ///
    /// # Panics
    /// It fails, or takes more than half a minute.
    #[must_use]
    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.try_run(program, arguments).unwrap_or_else(|fault| panic!("{program} {}: {fault}", arguments.join(" ")))
    }

    /// Output of a program of Slurm, or its stderr.
    ///
    /// # Errors
    /// It fails, or takes more than half a minute.
    pub fn try_run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("timeout");
        command.arg("30").arg(program).args(arguments).env("SLURM_CONF", self.conf()).stdin(Stdio::null());
        command.current_dir(self.folder.path());
        let ran = command.output().map_err(|fault| fault.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if ran.status.success() { Ok(text(&ran.stdout)) } else { Err(text(&ran.stderr)) }
    }

    /// Its nodes as JSON. `scontrol` of 22.05 prints none.
    ///
    /// # Panics
    /// Neither program prints them.
    #[must_use]
    pub fn nodes(&self) -> String {
        let nodes = self.try_run("scontrol", &["show", "nodes", "--json"]);
        nodes.unwrap_or_else(|_| self.run("sinfo", &["--all", "--json"]))
    }

    /// Submits a job that sleeps; answers its number, and what Slurm printed beside it.
    ///
    /// # Panics
    /// It is refused.
    #[must_use]
    pub fn submit(&self, arguments: &[&str], sleeps_s: u64) -> u32 {
        self.try_submit(arguments, sleeps_s).unwrap_or_else(|fault| panic!("{arguments:?}: {fault}")).0
    }

    /// As [`submit`](Self::submit), with the lines that the submission printed on stderr.
    ///
    /// # Errors
    /// It is refused: its stderr.
    pub fn try_submit(&self, arguments: &[&str], sleeps_s: u64) -> Result<(u32, String), String> {
        let wrap = format!("sleep {sleeps_s}");
        let mut command = Command::new("timeout");
        command.args(["30", "sbatch", "--parsable", "--output=/dev/null", "--wrap", &wrap]).args(arguments);
        command.env("SLURM_CONF", self.conf()).stdin(Stdio::null()).current_dir(self.folder.path());
        let ran = command.output().map_err(|fault| fault.to_string())?;
        let words = String::from_utf8_lossy(&ran.stderr).into_owned();
        let id = String::from_utf8_lossy(&ran.stdout).trim().parse();
        if ran.status.success() { Ok((id.map_err(|_| words.clone())?, words)) } else { Err(words) }
    }

    /// State and reason of a job now, as `R None`; empty once it is forgotten.
    #[must_use]
    pub fn state(&self, job: u32) -> String {
        let arguments = ["--noheader", "--states=all", "--job", &job.to_string(), "--format=%t %r"];
        self.try_run("squeue", &arguments).unwrap_or_default().trim().to_owned()
    }

    /// Waits until a job is in a state; answers after how long.
    ///
    /// # Panics
    /// It is not within a minute.
    #[expect(clippy::must_use_candidate, reason = "most wait and do not ask for how long")]
    pub fn until_state(&self, job: u32, wanted: &str) -> Duration {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.state(job).starts_with(wanted) {
                return start.elapsed();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("job {job} is {:?}, not {wanted}, after {} s", self.state(job), PATIENCE.as_secs())
    }

    /// Limits of a QOS, sorted.
    #[must_use]
    pub fn limit(&self, qos: &str) -> String {
        let name = format!("name={qos}");
        let text = self.run("sacctmgr", &["-nP", "show", "qos", "where", &name, "format=grptres"]);
        let mut limits: Vec<&str> = text.trim().split(',').collect();
        limits.sort_unstable();
        limits.join(",")
    }

    /// Stops a daemon (`SIGSTOP`), or lets it go on.
    ///
    /// # Panics
    /// It does not run.
    pub fn pause_accounting(&self, stands_still: bool) {
        let id = std::fs::read_to_string(self.path("run/slurmdbd")).expect("slurmdbd was started");
        let signal = if stands_still { "-STOP" } else { "-CONT" };
        let ran = Command::new("kill").args([signal, id.trim()]).status();
        assert!(ran.is_ok_and(|ended| ended.success()), "slurmdbd does not run");
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The end of its standard input ends it with all that it started.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}
