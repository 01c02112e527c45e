//! Where databases lie: folders that go away, small file systems, Postgres databases and servers.

use crate::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of its own, removed with this value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Outcome<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("headroom-outside.{}.{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|fault| format!("{}: {fault}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A small file system in memory, unmounted with this value.
pub struct Tmpfs {
    pub path: PathBuf,
    filler: PathBuf,
}

impl Tmpfs {
    /// # Errors
    /// This user may not mount.
    pub fn mount(path: &Path, size_mib: u64) -> Outcome<Self> {
        std::fs::create_dir_all(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
        let size = format!("size={size_mib}m,mode=0777");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path))?;
        Ok(Self { path: path.to_owned(), filler: path.join("filler") })
    }

    /// Fills what is free but for `left_bytes`.
    pub fn fill(&self, left_bytes: u64) -> Outcome<()> {
        let fault = |fault: std::io::Error| format!("{}: {fault}", self.filler.display());
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.filler).map_err(fault)?;
        let block = vec![b'x'; 1 << 16];
        let mut wanted = block.len();
        // Down to the last page, since the database may take what is left.
        while wanted >= 1 {
            if std::io::Write::write_all(&mut file, &block[..wanted]).is_err() {
                wanted /= 2;
            }
        }
        let length = file.metadata().map_err(fault)?.len();
        file.set_len(length.saturating_sub(left_bytes)).map_err(fault)
    }

    pub fn empty(&self) -> Outcome<()> {
        std::fs::remove_file(&self.filler).map_err(|fault| format!("{}: {fault}", self.filler.display()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(run(Command::new("umount").arg("-l").arg(&self.path)));
    }
}

/// Runs a command to its end; its stderr is the error.
pub fn run(command: &mut Command) -> Outcome<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.output().map_err(|fault| format!("{name}: {fault}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let (printed, also) = (String::from_utf8_lossy(&ran.stderr), String::from_utf8_lossy(&ran.stdout));
    Err(format!("{name} ended with {}: {} {}", ran.status, printed.trim(), also.trim()))
}

/// A database for one campaign.
pub struct Database {
    pub url: String,
    /// URL of the maintenance database and name of this one.
    server: Option<(String, String)>,
}

impl Database {
    /// `sqlite` in the folder, `postgres` on the server of `HEADROOM_TEST_POSTGRES`.
    pub fn new(kind: &'static str, folder: &Folder) -> Outcome<Self> {
        if kind == "sqlite" {
            return Ok(Self::sqlite_at(&folder.0));
        }
        let server = std::env::var("HEADROOM_TEST_POSTGRES")
            .map_err(|_| "no Postgres: run tests/with-postgres.sh target/debug/outside ...".to_owned())?;
        Self::postgres_on(&server, "")
    }

    pub fn sqlite_at(folder: &Path) -> Self {
        Self { url: format!("sqlite://{}/headroom.db", folder.display()), server: None }
    }

    /// A new database on a server; `more` ends the statement, such as a tablespace.
    pub fn postgres_on(server: &str, more: &str) -> Outcome<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("outside_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        psql(server, &format!("create database {name} {more}"))?;
        let (base, _) = server.rsplit_once('/').ok_or("HEADROOM_TEST_POSTGRES: expected postgres://.../DATABASE")?;
        let url = format!("{base}/{name}");
        Ok(Self { url, server: Some((server.to_owned(), name)) })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.server {
            drop(psql(server, &format!("drop database if exists {name} with (force)")));
        }
    }
}

pub fn psql(server: &str, statement: &str) -> Outcome<String> {
    run(Command::new(postgres_program("psql")).args(["--no-psqlrc", "--quiet", "--command", statement, server]))
}

/// Where Debian has it, else by `PATH`.
fn postgres_program(name: &str) -> PathBuf {
    let given = std::env::var("HEADROOM_TEST_PG_BIN").map(PathBuf::from).ok();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    let all = given.into_iter().chain(folders.into_iter().rev()).map(|folder| folder.join(name));
    all.into_iter().find(|path| path.exists()).unwrap_or_else(|| PathBuf::from(name))
}

/// A Postgres server of its own, stopped with this value. Its log and its journal lie in `folder`.
pub struct Postgres {
    data: PathBuf,
    pub url: String,
}

impl Postgres {
    pub fn start(folder: &Path) -> Outcome<Self> {
        let (data, port) = (folder.join("data"), free_port()?);
        let password = folder.join("password");
        std::fs::write(&password, "outside\n").map_err(|fault| fault.to_string())?;
        run(Command::new("chown").args(["-R", "postgres"]).arg(folder))?;
        let mut initdb = as_postgres("initdb", folder);
        initdb.arg("--pgdata").arg(&data).arg("--pwfile").arg(&password);
        initdb.args(["--username", "headroom", "--auth", "scram-sha-256", "--encoding", "UTF8"]);
        run(initdb.args(["--locale", "C.UTF-8", "--no-sync"]))?;
        let settings = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c max_connections=100",
            folder.display()
        );
        let mut start = as_postgres("pg_ctl", folder);
        start.arg("--pgdata").arg(&data).arg("--log").arg(folder.join("log"));
        // The server keeps what it inherits: a pipe of ours would never end.
        start.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let status = start.args(["--timeout", "30", "--wait", "start", "-o", &settings]).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("Postgres did not start on port {port}: its log lies in {}", folder.display()));
        }
        Ok(Self { data, url: format!("postgres://headroom:outside@127.0.0.1:{port}/postgres") })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = as_postgres("pg_ctl", &self.data);
        stop.arg("--pgdata").arg(&self.data);
        drop(run(stop.args(["--mode", "immediate", "--timeout", "30", "stop"])));
    }
}

/// Postgres refuses to run as root.
fn as_postgres(program: &str, folder: &Path) -> Command {
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(postgres_program(program)).current_dir(folder);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

fn free_port() -> Outcome<u16> {
    let bound = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|fault| format!("no free port: {fault}"))
}
