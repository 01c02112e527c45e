//! A Postgres that speaks only TLS, with a certificate of a private authority: accepted if authority and name match, refused
//! otherwise.
#![allow(clippy::unwrap_used, reason = "in a test, what should have worked and did not is a failure of the test")]

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use store::StoreError;
use tempfile::TempDir;

/// The folder of the newest Postgres of this machine, as `tests/with-postgres.sh` finds it.
fn binaries() -> PathBuf {
    let own = std::env::var_os("HEADROOM_TEST_PG_BIN").map(PathBuf::from);
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = own.into_iter().chain(installed.map(|version| version.path().join("bin"))).collect();
    found.retain(|folder| folder.join("initdb").exists());
    found.sort();
    found.pop().expect("a Postgres of this machine: run `make test`")
}

/// A server of its own, stopped when it goes out of scope.
struct Server {
    folder: TempDir,
    port: u16,
}

impl Server {
    /// Runs a program of Postgres, which refuses to run as root.
    fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
        let program = binaries().join(program);
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let mut command = if is_root { Command::new("/usr/sbin/runuser") } else { Command::new(&program) };
        if is_root {
            command.args(["-u", "postgres", "--"]).arg(&program);
        }
        command.args(arguments).current_dir(folder).output().unwrap()
    }

    fn start(certificate: &str, key: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // A no-op where this user is not root.
        let _ = Command::new("chown").arg("postgres").arg(folder.path()).status();
        let initdb = ["--pgdata", "data", "--username", "headroom", "--auth", "trust", "--no-sync"];
        let made = Self::run(folder.path(), "initdb", &initdb);
        assert!(made.status.success(), "{made:?}");
        let data = folder.path().join("data");
        for (name, text) in
            [("server.crt", certificate), ("server.key", key), ("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n")]
        {
            fs::write(data.join(name), text).unwrap();
            let _ = Command::new("chown").arg("postgres").arg(data.join(name)).status();
            let _ = Command::new("chmod").arg("600").arg(data.join(name)).status();
        }
        let options =
            format!("-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c ssl=on -c fsync=off");
        let begun =
            Self::run(folder.path(), "pg_ctl", &["-D", "data", "-l", "data/log", "-w", "-o", &options, "start"]);
        assert!(begun.status.success(), "{begun:?}");
        Self { folder, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        Self::run(self.folder.path(), "pg_ctl", &["-D", "data", "-m", "immediate", "stop"]);
    }
}

/// An authority, and its certificate.
fn authority() -> (Issuer<'static, KeyPair>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), certificate)
}

#[tokio::test]
async fn a_server_is_verified_by_its_authority_and_its_name() {
    let ((ours, our_ca), (_, other_ca)) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
    let server = Server::start(&certificate.pem(), &key.serialize_pem());
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = files.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (our_ca, other_ca) = (file("ours.pem", &our_ca), file("other.pem", &other_ca));
    let url = |host: &str, how: &str| format!("postgres://headroom@{host}:{}/postgres?{how}", server.port);
    let verified = url("localhost", &format!("sslmode=verify-full&sslrootcert={our_ca}"));
    let store = store::connect(&verified).await.unwrap();
    store.prove_write().await.unwrap();
    store.close().await;
    for (why, refused) in [
        ("another authority", url("localhost", &format!("sslmode=verify-full&sslrootcert={other_ca}"))),
        ("another name", url("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={our_ca}"))),
        ("the authorities of the machine", url("localhost", "sslmode=verify-full")),
    ] {
        let fault = store::connect(&refused).await.err().unwrap_or_else(|| panic!("{why} is accepted"));
        println!("{why}: {fault}");
        assert!(matches!(fault, StoreError::Tls { .. }) && !fault.is_retryable(), "{why}: {fault:?}");
        let text = fault.to_string();
        assert!(text.contains("is not trusted") && text.contains("invalid peer certificate"), "{why}: {text}");
        assert!(text.contains("check sslmode, sslrootcert and the host"), "{why}: {text}");
    }
    let fault = store::connect(&url("localhost", "sslmode=disable")).await.err().unwrap();
    println!("plain text: {fault}");
    assert!(matches!(fault, StoreError::Denied { .. }) && !fault.is_retryable(), "plain text: {fault:?}");
}
