//! The programs as a user runs them.

use crate::workspace_root;
use serde_json::Value;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How a program ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// # Panics
    /// The program failed.
    #[must_use]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// # Panics
    /// The program failed, or its output is no JSON.
    #[must_use]
    pub fn json(self) -> Value {
        let ran = self.ok();
        serde_json::from_str(&ran.stdout).unwrap_or_else(|fault| panic!("{fault}: {}", ran.stdout))
    }
}

/// The path of a program that was built with this test.
#[must_use]
pub fn program_path(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("this test has a path");
    let folder = here.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
    let program = folder.join(name);
    assert!(program.exists(), "{} is not built: run `make test`", program.display());
    program
}

fn command(name: &str, arguments: &[&str]) -> Command {
    let mut command = without_settings(Command::new(program_path(name)));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn without_settings(mut command: Command) -> Command {
    // The caller's own settings of programs are not under test.
    let settings = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for variable in settings.filter(|name| name.starts_with("HEADROOM_") || name == "DATABASE_URL") {
        command.env_remove(variable);
    }
    command
}

/// The programs of the workspace, as cargo knows them.
///
/// # Panics
/// Cargo does not answer.
#[must_use]
pub fn program_names() -> Vec<String> {
    let ran = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace_root())
        .output()
        .expect("cargo knows the workspace");
    let metadata: Value = serde_json::from_slice(&ran.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list").iter();
    // A server that tests ask is no program of Headroom.
    let tests = workspace_root().join("tests");
    let is_shipped =
        |package: &&Value| !Path::new(package["manifest_path"].as_str().expect("a path")).starts_with(&tests);
    let packages = packages.filter(is_shipped);
    let targets = packages.flat_map(|package| package["targets"].as_array().expect("a list"));
    let programs = targets.filter(|target| target["kind"][0] == "bin");
    programs.map(|target| target["name"].as_str().expect("a name").to_owned()).collect()
}

/// Runs a program to its end.
///
/// # Panics
/// It cannot be started.
#[must_use]
pub fn program(name: &str, arguments: &[&str]) -> Ran {
    program_with(name, arguments, &[])
}

/// As [`program`], with variables of the environment.
///
/// # Panics
/// It cannot be started.
#[must_use]
pub fn program_with(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let output = command(name, arguments).envs(variables.iter().copied()).output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("programs print UTF-8");
    Ran { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// As [`program`], its stdout a pipe whose reader has gone. The exit code, and its stderr.
///
/// # Panics
/// It cannot be started.
#[must_use]
pub fn program_to_closed_pipe(name: &str, arguments: &[&str]) -> (i32, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe opens");
    drop(reader);
    let ran = run_to(name, arguments, writer.into());
    (ran.code, ran.stderr)
}

/// Exit code of a program whose stderr is a pipe without a reader.
///
/// # Panics
/// It cannot be started.
#[must_use]
pub fn exit_without_stderr(name: &str, arguments: &[&str]) -> Option<i32> {
    let (reader, writer) = std::io::pipe().expect("a pipe opens");
    drop(reader);
    command(name, arguments).stdout(Stdio::null()).stderr(writer).status().expect("the program starts").code()
}

/// As [`program`], its stdout a file.
///
/// # Panics
/// The file cannot be opened, or the program not started.
#[must_use]
pub fn program_to_file(name: &str, arguments: &[&str], file: &Path) -> Ran {
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("the file opens");
    run_to(name, arguments, file.into())
}

fn run_to(name: &str, arguments: &[&str], stdout: Stdio) -> Ran {
    let child = command(name, arguments).stdout(stdout).stderr(Stdio::piped()).spawn().expect("the program starts");
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8(output.stderr).expect("programs print UTF-8");
    Ran { code: output.status.code().unwrap_or(-1), stdout: String::new(), stderr }
}

/// As [`program`], interrupted after a while as by Ctrl-C. The signal that ended it, and its stderr.
///
/// # Panics
/// It cannot be started, or has ended by itself before.
#[must_use]
pub fn program_interrupted(name: &str, arguments: &[&str], after: Duration) -> (Option<i32>, String) {
    let piped = Stdio::piped;
    // Shells let jobs in the background ignore the signal, and what ignores it hands that on.
    let mut listening = without_settings(Command::new("env"));
    listening.arg("--default-signal=INT").arg(program_path(name)).args(arguments).stdin(Stdio::null());
    let child = listening.stdout(piped()).stderr(piped()).spawn().expect("the program starts");
    std::thread::sleep(after);
    let printed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(printed.expect("kill runs").success(), "{name} had ended");
    let output = child.wait_with_output().expect("the program ends");
    (output.status.signal(), String::from_utf8(output.stderr).expect("programs print UTF-8"))
}

/// A program that listens, such as `quota-service`; ended with this value.
pub struct Listening {
    child: Child,
    pub address: String,
}

impl Listening {
    /// Starts the service on a free loopback port.
    ///
    /// # Panics
    /// It ends instead of listening.
    #[must_use]
    pub fn start(arguments: &[&str]) -> Self {
        let own = if arguments.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] };
        Self::of("quota-service", &[own, &["--json"], arguments].concat(), &[])
    }

    /// Starts any program that says as JSON in its first line where it listens.
    ///
    /// # Panics
    /// It ends instead of listening.
    #[must_use]
    pub fn of(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = command(name, arguments)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the first line is read");
        let announced: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut printed = String::new();
            let mut stderr = child.stderr.take().expect("stderr is piped");
            stderr.read_to_string(&mut printed).expect("stderr is read");
            panic!("{name} does not listen: {printed}")
        });
        let address = announced["listening"].as_str().expect("an address").to_owned();
        Self { child, address }
    }

    /// The same service, reached at another address.
    #[must_use]
    pub fn at(mut self, address: String) -> Self {
        self.address = address;
        self
    }

    /// Asks for a path on another thread, with the tag of what is answered now; the thread ends with the status.
    ///
    /// # Panics
    /// The service does not answer.
    #[must_use]
    pub fn poll(&self, path: &str) -> std::thread::JoinHandle<u16> {
        let url = format!("http://{}{path}", self.address);
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let now = agent.get(url.split("&wait").next().unwrap_or(&url)).call().expect("the service answers");
        let etag = now.headers()["etag"].to_str().expect("a tag is text").to_owned();
        std::thread::spawn(move || {
            agent.get(&url).header("if-none-match", &etag).call().map_or(0, |answer| answer.status().as_u16())
        })
    }

    /// The JSON body of a path, requested again until it is `wanted`, for ten seconds. A connection that a service closes
    /// while it takes over from its fallback counts as another try.
    ///
    /// # Panics
    /// It does not come to that.
    #[must_use]
    pub fn get_until(&self, path: &str, wanted: impl Fn(u16, &Value) -> bool) -> Value {
        let mut last = (0, Value::Null);
        for _ in 0..100 {
            last = self.get(path);
            if wanted(last.0, &last.1) {
                return last.1;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{path}: {last:?}")
    }

    /// # Panics
    /// The service does not answer.
    #[must_use]
    pub fn get(&self, path: &str) -> (u16, Value) {
        self.get_as("", path)
    }

    /// As [`get`](Self::get), with a token, if it is one.
    ///
    /// # Panics
    /// The service does not answer.
    #[must_use]
    pub fn get_as(&self, token: &str, path: &str) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = agent.get(format!("http://{}{path}", self.address));
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = request.call().expect("the service answers");
        let body = response.body_mut().read_to_string().expect("the body is text");
        (response.status().as_u16(), serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// The status and JSON body that a method answers, or `None` where the service went away before it did.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        send_to(&self.address, method, path, body)
    }

    /// As [`send`](Self::send), with a token.
    #[must_use]
    pub fn send_as(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        send_with(&self.address, Some(token), method, path, body)
    }

    /// Lets the service stand still, as a machine does that is swapped out, or goes on again.
    ///
    /// # Panics
    /// It has ended.
    pub fn pause(&self, stands_still: bool) {
        let signal = if stands_still { "-STOP" } else { "-CONT" };
        let printed = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(printed.expect("kill runs").success(), "the service had ended by itself");
    }

    /// The memory that the service holds.
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the service runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
    }

    /// Tells the service to read its files again.
    ///
    /// # Panics
    /// It has ended.
    pub fn hang_up(&self) {
        let printed = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status();
        assert!(printed.expect("kill runs").success(), "the service had ended by itself");
    }

    /// Ends the service as a lost machine does: no signal that it could hear.
    ///
    /// # Panics
    /// It has ended by itself, or cannot be ended.
    pub fn kill(&mut self) {
        assert!(self.child.try_wait().expect("its state").is_none(), "the service had ended by itself");
        self.child.kill().expect("a signal is sent");
        // Not by the state that /proc names: it says `Z` once the first thread has ended, while others still hold the port.
        self.child.wait().expect("the service ends");
    }

    /// Tells the service to stop, as an operator does, and says how it ended.
    ///
    /// # Panics
    /// It gets no signal before.
    #[must_use]
    pub fn stop(mut self) -> Ran {
        let printed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(printed.expect("kill runs").success());
        let mut stderr = String::new();
        self.child.stderr.take().expect("stderr is piped").read_to_string(&mut stderr).expect("stderr is read");
        let code = self.child.wait().expect("the child ends").code().unwrap_or(-1);
        Ran { code, stdout: String::new(), stderr }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address that stays free while nobody listens there: below the ports that the system gives to connections, which
/// would take it where a service is killed and started again.
///
/// # Panics
/// There is none.
#[must_use]
pub fn free_address() -> String {
    let start = RandomState::new().hash_one(std::process::id());
    let ports = (0..5_000).map(|number| 15_000 + (start.wrapping_add(number) % 15_000) as u16);
    let mut free = ports.filter(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok());
    format!("127.0.0.1:{}", free.next().expect("a free port"))
}

/// The status and JSON body that a service answers, or `None` where it did not, or went away before it did.
#[must_use]
pub fn send_to(address: &str, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
    send_with(address, None, method, path, body)
}

fn send_with(
    address: &str,
    token: Option<&str>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Option<(u16, Value)> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .into();
    let url = format!("http://{address}{path}");
    // No service here has tokens where none is given.
    let bearer = format!("Bearer {}", token.unwrap_or_default());
    let (name, value) = ("authorization", bearer.as_str());
    let sent = match (method, body) {
        ("DELETE", _) => agent.delete(url).header(name, value).call(),
        ("GET", _) => agent.get(url).header(name, value).call(),
        ("PUT", Some(body)) => agent.put(url).header(name, value).send_json(body),
        (_, Some(body)) => agent.post(url).header(name, value).send_json(body),
        (_, None) => agent.post(url).header(name, value).send_empty(),
    };
    let mut response = sent.ok()?;
    let body = response.body_mut().read_to_string().ok()?;
    Some((response.status().as_u16(), serde_json::from_str(&body).unwrap_or(Value::String(body))))
}
