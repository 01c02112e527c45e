//! Work of operators: backups, restores, retention, certificates.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serving::tls::{Files, Tls};
use std::path::{Path, PathBuf};
use tests::{Backend, Listening, fresh_database, on_both_databases, program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

on_both_databases![
    a_restore_brings_the_backup_back_and_fences_earlier_writers,
    a_backup_that_cannot_be_made_or_read_has_a_reason_and_no_file,
    rows_older_than_their_retention_are_forgotten_and_needed_ones_stay,
    a_running_service_forgets_old_rows_by_itself,
    reported_states_leave_the_audit_before_people_s_acts,
];

async fn with_task(database: &TestDatabase) -> TestService {
    let service = serving(database, 500).await;
    let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
    let _ = service.put("/v1/nodes/n0", &node).await.expect(200);
    let task = |id: &str| json!({ "cluster": "demo", "gpu_model": "A100", "id": id, "organization": "org-000", "class": "hp", "gpus_per_pod": 1.0, "pods": 1 });
    let _ = service.post("/v1/tasks", &task("a")).await.expect(200);
    let _ = service.post("/v1/tasks", &task("b")).await.expect(200);
    let _ = service.post("/v1/tasks/b/finish?cluster=demo&gpu_model=A100", &json!({})).await.expect(200);
    service
}

/// A last quota, without the GPUs that tasks have taken since.
async fn last_quota(service: &TestService) -> Value {
    let mut answer = quota(service, 4).await;
    assert!(answer.as_object_mut().unwrap().remove("available_gpus").is_some());
    // A service that has started promises nothing before its first renewal, and says so.
    let of_tasks = ["not_renewed_since_takeover", "tasks_since_renewal"].map(Value::from);
    answer["reasons"].as_array_mut().unwrap().retain(|reason| !of_tasks.contains(&reason["code"]));
    answer
}

async fn a_restore_brings_the_backup_back_and_fences_earlier_writers(database: TestDatabase) {
    let service = with_task(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headroom.backup");
    let file = file.to_str().unwrap();
    let made = program("quota-service", &["database", "backup", file, "--json", "--database", &database.url]).json();
    assert!(made["bytes"].as_u64().unwrap() > 10_000, "{made}");
    // Later rows are not in it.
    let _ = service
        .send(axum::http::Method::DELETE, "/v1/tasks/a?cluster=demo&gpu_model=A100", &[], None)
        .await
        .expect(200);
    let empty = fresh_database(database.backend).await;
    let restored = program("quota-service", &["database", "restore", file, "--json", "--database", &empty.url]).json();
    assert_eq!((&restored["placed_pools"], &restored["running_tasks"]), (&1.into(), &1.into()), "{restored}");
    let again = TestService::start(empty.store().await, service.service.core.clock.now()).await;
    let task = again.get("/v1/tasks/a?cluster=demo&gpu_model=A100").await.expect(200);
    assert_eq!(task["status"], "running");
    assert_eq!(last_quota(&again).await, last_quota(&service).await);
    let usage = "SELECT count(*) FROM usage";
    assert_eq!(empty.numbers(usage).await, database.numbers(usage).await);
    let held = "SELECT epoch FROM leases";
    assert!(empty.numbers(held).await[0] > database.numbers(held).await[0], "earlier writers are fenced");
    let again = program("quota-service", &["database", "restore", file, "--database", &empty.url]);
    assert!(
        again.code == 2 && again.stderr.contains("was not changed: restore into"),
        "not over other rows: {again:?}"
    );
}

async fn a_running_service_forgets_old_rows_by_itself(database: TestDatabase) {
    // Quotas, entries of the audit and a finished task of years ago; the task that runs is kept.
    let service = with_task(&database).await;
    service.leave().await;
    let count = async |table: &str| database.numbers(&format!("SELECT count(*) FROM {table}")).await[0];
    let (usage, tasks) = (count("usage").await, count("tasks").await);
    assert!(count("quotas").await > 0 && count("audit").await > 0 && tasks == 2);
    let program = Listening::start(&["--database", &database.url]);
    let since = std::time::Instant::now();
    // The first and the newest quota of a pool stay.
    let old_quotas = "SELECT count(*) FROM quotas WHERE id NOT IN (SELECT quota_id FROM newest_quotas) \
                      AND id NOT IN (SELECT min(id) FROM quotas GROUP BY cluster, gpu_model, hours)";
    let old = "SELECT count(*) FROM audit WHERE target LIKE '%n0%'";
    while database.numbers(old).await[0] + database.numbers(old_quotas).await[0] > 0 || count("tasks").await > 1 {
        assert!(since.elapsed() < Duration::from_mins(1), "it keeps what is old");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!((count("usage").await, count("tasks").await), (usage, 1), "usage is kept for ever unless set");
    assert_eq!(program.stop().code, 0);
}

async fn a_backup_that_cannot_be_made_or_read_has_a_reason_and_no_file(database: TestDatabase) {
    drop(with_usage(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let none = format!("sqlite://{}", path("none.db"));
    let ran = program("quota-service", &["database", "backup", &path("saved"), "--database", &none]);
    assert!(ran.code == 3 && ran.stderr.contains("none.db: name the right one"), "an empty backup is none: {ran:?}");
    for command in [&["token", "list"][..], &["token", "revoke", "1"], &["promises"]] {
        let ran = program("quota-service", &[command, &["--database", &none]].concat());
        assert!(ran.code == 3 && ran.stderr.contains("none.db: name the right one"), "{command:?}: {ran:?}");
    }
    let calendar = ["calendar", "set", "--cluster", "earth", "CN", "--database", &none];
    let ran = program("datasets", &calendar);
    assert!(ran.code == 3 && ran.stderr.contains("none.db: name the right one"), "{ran:?}");
    std::fs::write(path("there"), "text").unwrap();
    let ran = program("quota-service", &["database", "backup", &path("there"), "--database", &database.url]);
    assert!(ran.code == 2 && ran.stderr.contains("is there already"), "{ran:?}");
    let ran = program("quota-service", &["database", "backup", &path("no/folder"), "--database", &database.url]);
    assert!(ran.code != 0 && !ran.stderr.is_empty(), "{ran:?}");
    let empty = fresh_database(database.backend).await;
    let ran = program("quota-service", &["database", "restore", &path("nothing"), "--database", &empty.url]);
    assert!(ran.code == 3 && ran.stderr.contains("name a file of quota-service database backup"), "{ran:?}");
    let ran = program("quota-service", &["database", "restore", &path("there"), "--database", &empty.url]);
    assert!(ran.code == 3 && ran.stderr.contains("no backup: name a file"), "{ran:?}");
    let (other, head) = match database.backend {
        Backend::Sqlite => ("a backup of Postgres", "PGDMP"),
        Backend::Postgres => ("a backup of SQLite", "SQLite format 3\0"),
    };
    std::fs::write(path("there"), head).unwrap();
    let ran = program("quota-service", &["database", "restore", &path("there"), "--database", &empty.url]);
    assert!(ran.code == 3 && ran.stderr.contains(other), "{ran:?}");
    if let Some(file) = empty.url.strip_prefix("sqlite://") {
        assert!(!Path::new(file).exists(), "a file was left behind");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["there"]);
}

async fn rows_older_than_their_retention_are_forgotten_and_needed_ones_stay(database: TestDatabase) {
    let service = with_task(&database).await;
    let before = last_quota(&service).await;
    let retain = |flags: &[&str]| {
        let all = [&["database", "retain", "--json", "--database", &database.url], flags].concat();
        program("quota-service", &all)
    };
    assert_eq!(retain(&[]).code, 2, "say what");
    assert_eq!(retain(&["--usage-days", "30"]).code, 2, "models look back 35 days");
    // Everything here is of 2024, and old.
    let all = ["--usage-days", "36", "--history-days", "1", "--tasks-days", "1", "--audit-days", "1"];
    let tried = retain(&[&all[..], &["--dry-run"]].concat()).json();
    assert!(tried["usage"]["rows"].is_null() && tried["usage"]["before"].is_string(), "{tried}");
    assert!(database.numbers("SELECT count(*) FROM usage").await[0] > 0);
    let done = retain(&all).json();
    assert_eq!(done["tasks"]["rows"], 1, "the one that has ended: {done}");
    assert!(done["usage"]["rows"].as_u64().unwrap() > 900 && done["audit"]["rows"].as_u64().unwrap() >= 3, "{done}");
    assert_eq!(database.numbers("SELECT count(*) FROM usage").await, [0]);
    let again = TestService::start(database.store().await, service.service.core.clock.now()).await;
    assert_eq!(last_quota(&again).await, before, "the last quotas stay");
    assert_eq!(again.get("/v1/tasks/a?cluster=demo&gpu_model=A100").await.expect(200)["status"], "running");
    let entries = database.store().await.audit(at(0), at(i64::from(u32::MAX)), 10).await.unwrap();
    assert_eq!(entries.len(), 1, "retention is audited");
    assert_eq!(entries[0].record.action, "database retain");
}

async fn reported_states_leave_the_audit_before_people_s_acts(database: TestDatabase) {
    let service = serving(&database, 500).await;
    for seconds in 0..20 {
        service.pass_s(seconds);
        let now = service.service.core.clock.now();
        let _ = service.put("/v1/pools/demo:A100/state", &state(128, 5, &json!({}), now)).await.expect(200);
    }
    let refused = service.put("/v1/pools/demo:A100/settings", &json!({})).await.expect(400);
    assert!(refused["code"].is_string());
    let done =
        program("quota-service", &["database", "retain", "--json", "--database", &database.url, "--reports-days", "3"]);
    assert_eq!(done.json()["reports"]["rows"], 20);
    let entries = database.store().await.audit(at(0), at(i64::from(u32::MAX)), 100).await.unwrap();
    let entries: Vec<String> = entries
        .into_iter()
        .map(|one| format!("{} {}", one.record.action, one.record.detail_json.unwrap_or_default()))
        .collect();
    let decision = entries.iter().find(|one| one.starts_with("PUT /v1/pools/{id}/state"));
    assert!(decision.is_some_and(|one| one.contains("first reported state")), "who places the pool: {entries:?}");
    assert_eq!(entries.iter().filter(|one| one.contains("/state")).count(), 1, "{entries:?}");
}

/// An authority, and what it has signed.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.join(format!("{name}.ca")), certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), folder: folder.to_owned() }
    }

    /// Writes NAME.pem and NAME.key.
    fn sign(&self, name: &str, host: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// A client that shows NAME, and trusts CA.
    fn client(&self, name: &str, ca: &str) -> Tls {
        let path = |name: String| self.folder.join(name);
        let (certificate, key) = (path(format!("{name}.pem")), path(format!("{name}.key")));
        Tls::read(Files { certificate, key, client_ca: Some(path(format!("{ca}.ca"))) }).unwrap()
    }
}

/// The answer of a service over TLS, or why there is none.
async fn asked(client: &Tls, address: &str, path: &str) -> Result<String, String> {
    let stream = TcpStream::connect(address).await.map_err(|fault| fault.to_string())?;
    let mut stream = client.connect("localhost", stream).await.map_err(|fault| fault.to_string())?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|fault| fault.to_string())?;
    let mut answer = Vec::new();
    // A side that closes without a closing message has sent all that it will.
    let read = stream.read_to_end(&mut answer).await.map_err(|fault| fault.to_string());
    if answer.is_empty() { Err(read.err().unwrap_or_default()) } else { Ok(String::from_utf8(answer).unwrap()) }
}

#[tokio::test]
async fn clients_show_certificates_and_those_of_the_service_are_read_again() {
    let database = fresh_database(Backend::Sqlite).await;
    drop(serving(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "theirs"));
    ours.sign("service", "localhost");
    ours.sign("client", "user");
    theirs.sign("stranger", "user");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let settings = format!(
        "[quota-service]\nlog = \"error\"\ntls_certificate_file = {:?}\ntls_key_file = {:?}\ntls_client_ca_file = {:?}\n",
        path("service.pem"),
        path("service.key"),
        path("ours.ca")
    );
    std::fs::write(path("headroom.toml"), settings).unwrap();
    let service = Listening::start(&["--database", &database.url, "--config", &path("headroom.toml")]);
    let friend = ours.client("client", "ours");
    let answer = asked(&friend, &service.address, "/healthz").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let scrape = asked(&friend, &service.address, "/metrics").await.unwrap();
    assert!(scrape.contains("\nheadroom_tls_certificate_end_timestamp_seconds "), "{scrape}");
    let refused = asked(&ours.client("client", "theirs"), &service.address, "/healthz").await.unwrap_err();
    assert!(refused.contains("invalid peer certificate"), "an authority that did not sign the service: {refused}");
    let stranger = {
        std::fs::copy(path("stranger.pem"), path("mixed.pem")).unwrap();
        std::fs::copy(path("stranger.key"), path("mixed.key")).unwrap();
        ours.client("mixed", "ours")
    };
    let refused = asked(&stranger, &service.address, "/healthz").await;
    assert!(refused.is_err(), "a certificate of another authority lets nobody in: {refused:?}");
    let mut plain = TcpStream::connect(&service.address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes).await;
    assert!(!bytes.starts_with(b"HTTP"), "nothing is sent in the clear");
    // A key that is not that of the certificate: the ones before stay. Then a new pair, of the other authority.
    theirs.sign("next", "localhost");
    std::fs::copy(path("next.pem"), path("service.pem")).unwrap();
    service.hang_up();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(asked(&friend, &service.address, "/healthz").await.is_ok());
    std::fs::copy(path("next.key"), path("service.key")).unwrap();
    service.hang_up();
    let of_theirs = ours.client("client", "theirs");
    let mut tries = 0;
    while asked(&of_theirs, &service.address, "/healthz").await.is_err() {
        tries += 1;
        assert!(tries < 100, "the new certificate is not shown");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ended = service.stop();
    assert!(ended.code == 0 && ended.stderr.contains("the previous ones stay valid"), "{ended:?}");
}

/// A ClientHello of TLS 1.2, RFC 5246, with the suites and curves of our server.
fn hello_of_tls_1_2() -> Vec<u8> {
    let extensions =
        [&[0, 10, 0, 6, 0, 4, 0, 29, 0, 23][..], &[0, 11, 0, 2, 1, 0], &[0, 13, 0, 10, 0, 8, 4, 3, 5, 3, 8, 4, 4, 1]]
            .concat();
    let mut hello = vec![3, 3];
    hello.extend_from_slice(&[7; 32]);
    hello.extend_from_slice(&[0, 0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0]);
    hello.extend_from_slice(&u16::try_from(extensions.len()).unwrap().to_be_bytes());
    hello.extend_from_slice(&extensions);
    let length = u16::try_from(hello.len()).unwrap();
    let head = [&[22, 3, 1][..], &(length + 4).to_be_bytes(), &[1, 0], &length.to_be_bytes()].concat();
    [head, hello].concat()
}

#[tokio::test]
async fn tls_1_2_is_refused() {
    const ALERT: u8 = 21;
    const PROTOCOL_VERSION: u8 = 70;
    let database = fresh_database(Backend::Sqlite).await;
    drop(serving(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours");
    ours.sign("service", "localhost");
    ours.sign("client", "user");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("service.pem"), path("service.key"));
    let settings =
        format!("[quota-service]\nlog = \"error\"\ntls_certificate_file = {certificate:?}\ntls_key_file = {key:?}\n");
    std::fs::write(path("headroom.toml"), settings).unwrap();
    let service = Listening::start(&["--database", &database.url, "--config", &path("headroom.toml")]);
    let mut stream = TcpStream::connect(&service.address).await.unwrap();
    stream.write_all(&hello_of_tls_1_2()).await.unwrap();
    let mut answer = [0; 7];
    let _ = stream.read_exact(&mut answer).await.unwrap();
    assert_eq!((answer[0], answer[6]), (ALERT, PROTOCOL_VERSION), "{answer:?}");
    let answer = asked(&ours.client("client", "ours"), &service.address, "/healthz").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "1.3 goes on: {answer}");
    assert_eq!(service.stop().code, 0);
}

async fn connected(address: &str) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// The head of the answer on a connection that stays open.
async fn answer_on(connection: &mut TcpStream, path: &str) -> String {
    connection.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    let mut buffer = vec![0; 64 * 1_024];
    let size = connection.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..size]).into_owned()
}

/// Files and metrics need no database; other paths are known, or not.
async fn answers_without_a_database(address: &str) {
    for (path, status) in
        [("/", 200), ("/assets/app.js", 200), ("/openapi.json", 200), ("/nosuch", 404), ("/v1/pools", 503)]
    {
        let answer = answer_on(&mut connected(address).await, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
    let metrics = answer_on(&mut connected(address).await, "/metrics").await;
    assert!(metrics.contains("headroom_database_up 0"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_starts_before_its_database_answers_the_last_quotas_and_goes_on_when_it_is_there() {
    let database = fresh_database(Backend::Postgres).await;
    drop(serving(&database, 500).await);
    let network = tests::Proxy::to(&database.url).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = path("last.json");
    std::fs::write(path("headroom.toml"), format!("[quota-service]\nlog = \"error\"\nfallback_file = {file:?}\n"))
        .unwrap();
    let (url, config) = (network.url(&database.url), path("headroom.toml"));
    let arguments = ["--database", &url, "--config", &config];
    let service = Listening::start(&arguments);
    let answered = service.get_until(&quota_path(4), |status, _| status == 200);
    for _ in 0..100 {
        if Path::new(&file).exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(service.stop().code, 0);
    network.inject(tests::Fault::Gone);
    let service = Listening::start(&arguments);
    assert_eq!((service.get("/healthz").0, service.get("/readyz").0), (200, 503));
    assert_eq!(service.get("/readyz?for=reads").0, 200, "the last quotas are answered");
    let (status, old) = service.get(&quota_path(4));
    assert_eq!((status, &old["computed_at"]), (200, &answered["computed_at"]), "{old}");
    assert!(number(&old["quota_gpus"]) <= number(&answered["quota_gpus"]), "{old}");
    assert!(old["reasons"].to_string().contains("the database cannot be reached"), "{old}");
    let (status, refused) = service.send("POST", "/v1/tasks", Some(&json!({}))).unwrap();
    assert_eq!((status, &refused["code"]), (503, &"store-unavailable".into()));
    let detail = refused["detail"].as_str().unwrap();
    assert_eq!(detail.matches("the database cannot be reached").count(), 1, "{detail}");
    assert_eq!(service.get(&quota_path(4).replace("A100", "B200")).0, 503, "what the file does not know may be there");
    answers_without_a_database(&service.address).await;
    // Connections from before the database is there: one without a request yet, one that is kept after an answer.
    let (mut quiet, mut kept) = (connected(&service.address).await, connected(&service.address).await);
    assert!(answer_on(&mut kept, "/v1/pools").await.starts_with("HTTP/1.1 503"));
    network.heal();
    let _ = service.get_until("/readyz", |status, _| status == 200);
    let _ = service.get_until("/v1/pools", |status, _| status == 200);
    for connection in [&mut quiet, &mut kept] {
        let answer = answer_on(connection, "/v1/pools").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop((quiet, kept));
    assert_eq!(service.stop().code, 0);
    // Damaged, it holds nothing, and the service still starts; without a file it does not.
    std::fs::write(&file, "{").unwrap();
    network.inject(tests::Fault::Gone);
    let service = Listening::start(&arguments);
    assert_eq!((service.get("/healthz").0, service.get(&quota_path(4)).0), (200, 401), "nobody is known any more");
    drop(service);
    let ran = program("quota-service", &["--listen", "127.0.0.1:0", "--database", &url]);
    assert_eq!(ran.code, 5, "{ran:?}");
}
