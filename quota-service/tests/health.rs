//! The program, on a database whose disk fills and whose file goes.
#![allow(clippy::unwrap_used, reason = "in a test, what should have worked and did not is a failure of the test")]

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Service {
    child: Child,
    address: String,
}

impl Service {
    /// Starts it on `headroom.db` in a folder, where it proves a write every second.
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, "")
    }

    /// As [`start`](Self::start), with more settings.
    fn start_with(folder: &Path, settings: &str) -> Self {
        Self::spawn(&mut command(folder, settings))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: serde_json::Value = serde_json::from_str(&line).unwrap();
        Self { address: printed["listening"].as_str().unwrap().to_owned(), child }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        let head = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// Asks for readiness until the answer holds a text.
    fn is_ready_with(&self, expected: &str, round: u32) {
        let begun = Instant::now();
        loop {
            let (status, answer) = self.ask("GET", "/readyz", "");
            if answer.contains(expected) {
                assert_eq!(status, 503);
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "round {round}: {answer}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The program on `headroom.db` in a folder.
fn command(folder: &Path, settings: &str) -> Command {
    let file = folder.join("headroom.toml");
    fs::write(&file, format!("[quota-service]\nwrite_proof_s = 1\nlog = \"error\"\n{settings}\n")).unwrap();
    let database = format!("sqlite://{}", folder.join("headroom.db").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_quota-service"));
    command.args(["--listen", "127.0.0.1:0", "--database", &database, "--json", "--config"]).arg(file);
    command
}

/// A user bound by the rights of files, unlike the superuser.
const PLAIN_USER: u32 = 65_534;

/// As [`command`], by a user whom the rights of files bind, and who owns the folder and what lies there.
fn command_of_a_plain_user(folder: &Path, settings: &str) -> Command {
    let mut command = command(folder, settings);
    if folder.metadata().unwrap().uid() != 0 {
        return command;
    }
    // The folders of the build may be closed to others.
    let program = folder.join("program");
    if !program.exists() {
        let _ = fs::copy(env!("CARGO_BIN_EXE_quota-service"), &program).unwrap();
    }
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(program);
    command.args(arguments).uid(PLAIN_USER).gid(PLAIN_USER);
    command
}

/// Gives a folder, with what lies there, to the user of [`command_of_a_plain_user`].
fn give_to_the_plain_user(folder: &Path) {
    if folder.metadata().unwrap().uid() == 0 {
        for entry in fs::read_dir(folder).unwrap() {
            chown(entry.unwrap().path(), Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
        }
    }
}

fn set_rights(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fill(folder: &Path) {
    let mut filler = File::options().create(true).append(true).open(folder.join("filler")).unwrap();
    for size in [1 << 20, 4_096, 1] {
        let zeros = vec![0; size];
        while filler.write_all(&zeros).is_ok() {}
    }
}

#[test]
fn readiness_says_that_the_disk_is_full_and_writes_go_on_with_room_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(folder.path()).status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("not run: this user may not mount a small file system");
        return;
    }
    let service = Service::start(folder.path());
    for round in 0..10 {
        service.is_ready_with("no-quota-yet", round);
        fill(folder.path());
        service.is_ready_with("no-writes", round);
        assert_eq!(service.ask("GET", "/v1/pools", "").0, 200, "round {round}: reads go on");
        fs::remove_file(folder.path().join("filler")).unwrap();
        service.is_ready_with("no-quota-yet", round);
    }
    drop(service);
    assert!(Command::new("umount").arg("--lazy").arg(folder.path()).status().unwrap().success());
}

#[test]
fn a_service_whose_database_file_is_deleted_or_emptied_says_so_and_ends() {
    for (lose, reason) in [
        ((|file: &Path| fs::remove_file(file)) as fn(&Path) -> std::io::Result<()>, "it was deleted or moved"),
        (|file| fs::write(file, ""), "it was emptied"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut service = Service::start(folder.path());
        service.is_ready_with("no-quota-yet", 0);
        let file = folder.path().join("headroom.db");
        lose(&file).unwrap();
        let status = service.child.wait().unwrap();
        let mut log = String::new();
        service.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(status.code() == Some(5) && log.contains(reason), "{status}: {log}");
        // Of one that was emptied SQLite may still write back what its log holds.
        assert!(reason == "it was emptied" || !file.exists(), "no ghost was made");
    }
}

/// Sends a node, which is acknowledged.
fn acknowledges_a_node(service: &Service, name: &str) {
    let node = r#"{"cluster": "earth", "gpu_model": "A100", "gpus": 8}"#;
    let (status, answer) = service.ask("PUT", &format!("/v1/nodes/{name}"), node);
    assert_eq!(status, 200, "{answer}");
}

fn knows_nodes(service: &Service, names: &[&str]) {
    let (_, answer) = service.ask("GET", "/v1/nodes?cluster=earth", "");
    assert!(names.iter().all(|name| answer.contains(&format!("\"{name}\""))), "{answer}");
}

/// A folder with a database that has a cluster.
fn with_a_cluster() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = store::connect(&format!("sqlite://{}", folder.path().join("headroom.db").display())).await.unwrap();
        let name = vocab::ClusterName::parse("earth").unwrap();
        let cluster = store::Cluster { name, time_zone: "UTC".to_owned(), calendar: "none".to_owned() };
        store.put_cluster(&cluster).await.unwrap();
        store.close().await;
    });
    folder
}

#[test]
fn a_database_file_that_is_moved_away_and_back_lacks_nothing_and_a_start_between_makes_none() {
    let folder = with_a_cluster();
    let mut service = Service::start(folder.path());
    acknowledges_a_node(&service, "n1");
    let (file, away) = (folder.path().join("headroom.db"), folder.path().join("away.db"));
    fs::rename(&file, &away).unwrap();
    assert_eq!(service.child.wait().unwrap().code(), Some(5));
    let ran = command(folder.path(), "").output().unwrap();
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(3) && log.contains("headroom.db-wal lies there"), "{}: {log}", ran.status);
    assert!(!file.exists(), "no new one was made");
    fs::rename(&away, &file).unwrap();
    knows_nodes(&Service::start(folder.path()), &["n1"]);
}

#[test]
fn a_log_that_is_deleted_ends_the_service_and_what_was_acknowledged_is_there() {
    let folder = with_a_cluster();
    let mut service = Service::start(folder.path());
    acknowledges_a_node(&service, "n1");
    fs::remove_file(folder.path().join("headroom.db-wal")).unwrap();
    acknowledges_a_node(&service, "n2");
    let status = service.child.wait().unwrap();
    let mut log = String::new();
    service.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(status.code() == Some(5) && log.contains("what it held is in the database now"), "{status}: {log}");
    knows_nodes(&Service::start(folder.path()), &["n1", "n2"]);
}

#[test]
fn a_log_that_is_cut_off_ends_the_service_and_its_database_stays_readable() {
    // A proof of a write may notice before the stop.
    for (is_stopped, codes) in [(false, [5, 5]), (true, [0, 5])] {
        let folder = with_a_cluster();
        let mut service = Service::start(folder.path());
        acknowledges_a_node(&service, "n1");
        File::options().write(true).open(folder.path().join("headroom.db-wal")).unwrap().set_len(0).unwrap();
        if is_stopped {
            let stopped = Command::new("kill").arg(service.child.id().to_string()).status().unwrap();
            assert!(stopped.success());
        }
        let status = service.child.wait().unwrap();
        let mut log = String::new();
        service.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        let is_expected = status.code().is_some_and(|code| codes.contains(&code));
        assert!(is_expected && (is_stopped || log.contains("it was cut off")), "{status}: {log}");
        let (status, answer) = Service::start(folder.path()).ask("GET", "/v1/nodes?cluster=earth", "");
        assert_eq!(status, 200, "stopped: {is_stopped}: {answer}");
    }
}

/// Bytes of the log of another database while that is open.
fn log_of_another() -> Vec<u8> {
    let folder = with_a_cluster();
    let service = Service::start(folder.path());
    for name in ["n3", "n4"] {
        acknowledges_a_node(&service, name);
    }
    fs::read(folder.path().join("headroom.db-wal")).unwrap()
}

#[test]
fn a_log_of_another_database_in_the_place_of_the_own_one_is_not_written_to_the_database() {
    let other = log_of_another();
    for (is_killed, code) in [(false, 5), (true, 3)] {
        let folder = with_a_cluster();
        let path = |name: &str| folder.path().join(name);
        let mut service = Service::start(folder.path());
        acknowledges_a_node(&service, "n1");
        fs::rename(path("headroom.db-wal"), path("mine")).unwrap();
        fs::write(path("new"), &other).unwrap();
        fs::rename(path("new"), path("headroom.db-wal")).unwrap();
        acknowledges_a_node(&service, "n2");
        if is_killed {
            drop(service);
            let child = command(folder.path(), "").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            service = Service { child, address: String::new() };
        }
        let status = service.child.wait().unwrap();
        let mut log = String::new();
        service.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        let expected = if is_killed { "put that one back" } else { "headroom.db-wal-of-another-1" };
        assert!(status.code() == Some(code) && log.contains(expected), "{status}: {log}");
        if is_killed {
            fs::rename(path("mine"), path("headroom.db-wal")).unwrap();
        }
        knows_nodes(&Service::start(folder.path()), &["n1", "n2"]);
    }
}

#[test]
fn a_file_that_is_replaced_is_served_without_the_log_of_the_one_before_or_refused() {
    for (is_killed, code) in [(false, 5), (true, 3)] {
        let (folder, other) = (with_a_cluster(), with_a_cluster());
        let [file, new] = [&folder, &other].map(|folder| folder.path().join("headroom.db"));
        let mut service = Service::start(folder.path());
        acknowledges_a_node(&service, "n1");
        fs::copy(&new, file.with_extension("new")).unwrap();
        fs::rename(file.with_extension("new"), &file).unwrap();
        if is_killed {
            drop(service);
            service = Service {
                child: command(folder.path(), "").stdout(Stdio::null()).spawn().unwrap(),
                address: String::new(),
            };
        }
        assert_eq!(service.child.wait().unwrap().code(), Some(code));
        if is_killed {
            fs::remove_file(folder.path().join("headroom.db-wal")).unwrap();
        }
        let (status, answer) = Service::start(folder.path()).ask("GET", "/v1/nodes?cluster=earth", "");
        assert!(status == 200 && !answer.contains("\"n1\""), "killed: {is_killed}: {answer}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_waited_for_where_there_is_a_file_of_the_last_quotas() {
    let folder = with_a_cluster();
    // In the place of the log, a folder: a missing right would not stop every user.
    let log = folder.path().join("headroom.db-wal");
    fs::create_dir(&log).unwrap();
    let settings = format!("fallback_file = {:?}", folder.path().join("last.json"));
    let service = Service::start_with(folder.path(), &settings);
    let (status, answer) = service.ask("GET", "/readyz", "");
    assert!(status == 503 && service.ask("GET", "/healthz", "").0 == 200, "{answer}");
    fs::remove_dir(&log).unwrap();
    service.is_ready_with("no-quota-yet", 0);
}

#[test]
fn a_file_in_a_folder_that_takes_no_more_files_is_waited_for_where_there_is_a_file_of_the_last_quotas() {
    let place = tempfile::tempdir().unwrap();
    set_rights(place.path(), 0o777);
    let folder = with_a_cluster();
    set_rights(folder.path(), 0o755);
    let settings = format!("fallback_file = {:?}", place.path().join("last.json"));
    let mut command = command_of_a_plain_user(folder.path(), &settings);
    give_to_the_plain_user(folder.path());
    set_rights(folder.path(), 0o555);
    let service = Service::spawn(&mut command);
    let (status, answer) = service.ask("GET", "/readyz", "");
    assert!(status == 503 && service.ask("GET", "/healthz", "").0 == 200, "{answer}");
    set_rights(folder.path(), 0o777);
    service.is_ready_with("no-quota-yet", 0);
}

#[test]
fn a_file_that_takes_no_writes_is_found_again_once_it_does() {
    let folder = with_a_cluster();
    set_rights(folder.path(), 0o777);
    let file = folder.path().join("headroom.db");
    let mut command = command_of_a_plain_user(folder.path(), "");
    give_to_the_plain_user(folder.path());
    set_rights(&file, 0o444);
    let service = Service::spawn(&mut command);
    service.is_ready_with("no-writes", 0);
    set_rights(&file, 0o666);
    service.is_ready_with("no-quota-yet", 0);
    acknowledges_a_node(&service, "n1");
}

#[test]
fn a_folder_that_cannot_be_entered_for_a_while_does_not_end_the_service() {
    let folder = with_a_cluster();
    set_rights(folder.path(), 0o777);
    let mut command = command_of_a_plain_user(folder.path(), "");
    give_to_the_plain_user(folder.path());
    let service = Service::spawn(&mut command);
    service.is_ready_with("no-quota-yet", 0);
    set_rights(folder.path(), 0o000);
    service.is_ready_with("no-writes", 0);
    set_rights(folder.path(), 0o777);
    service.is_ready_with("no-quota-yet", 0);
    acknowledges_a_node(&service, "n1");
}

#[test]
fn a_folder_that_is_missing_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("headroom.toml");
    for (lines, flags, place) in [
        ("fallback_file = \"/missing/folder/last.json\"", &[][..], "fallback_file"),
        ("", &["--database", "sqlite:///missing/folder/headroom.db"], "--database"),
        ("database = \"sqlite:///missing/folder/headroom.db\"", &[], "headroom.toml"),
    ] {
        fs::write(&settings, format!("[quota-service]\n{lines}\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_quota-service"));
        command.current_dir(folder.path()).args(["--listen", "127.0.0.1:0", "--config"]).arg(&settings).args(flags);
        let ran = command.output().unwrap();
        let log = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(4), "{log}");
        assert!(log.contains(place) && log.contains("/missing/folder"), "{log}");
    }
}
