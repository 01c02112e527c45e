//! `quota-service doctor` names each fault, prints its fix, and changes nothing.

use super::retrain::with_run;
use super::*;
use crate::store::at_version;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use store::{PoolSnapshot, Role, TokenRecord};
use tests::{Backend, Fault, Listening, Proxy, Ran, fresh_database, on_both_databases, program};

on_both_databases![
    a_service_that_runs_is_well_and_one_that_has_stopped_is_warned_of,
    a_long_period_between_renewals_is_warned_of_at_the_start_and_by_doctor,
    faults_of_the_data_are_named_pool_by_pool,
    an_old_schema_and_a_newer_one_are_named_and_left_as_they_are,
    tokens_that_expire_are_named_and_other_machines_need_one,
    a_deep_check_names_a_flipped_byte_of_a_run_or_a_snapshot_and_passes_sound_ones,
];

/// The published name of the field.
const FIX: &str = "mend";

/// Its findings, by name.
struct Found {
    code: i32,
    report: Value,
}

impl Found {
    fn of(ran: &Ran) -> Self {
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|fault| panic!("{fault}: {ran:?}"));
        for status in ["ok", "warn", "fail"] {
            let checks = report["checks"].as_array().unwrap().iter();
            let count = checks.filter(|check| check["status"] == status).count();
            assert_eq!(report[status], count, "{report}");
        }
        Self { code: ran.code, report }
    }

    fn check(&self, name: &str) -> &Value {
        let checks = self.report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {}", self.report))
    }

    /// The check has this status, these findings and this fix.
    fn expect(&self, name: &str, status: &str, found: &str, fix: &str) {
        let check = self.check(name);
        let is = |key: &str, part: &str| check[key].as_str().unwrap_or_default().contains(part);
        assert!(check["status"] == status && is("found", found) && is(FIX, fix), "{check}");
        assert_eq!(check[FIX].is_null(), status == "ok", "{check}");
    }
}

fn doctor(url: &str, more: &[&str]) -> Found {
    let listen = if more.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] };
    Found::of(&program("quota-service", &[&["doctor", "--json", "--database", url], listen, more].concat()))
}

async fn a_service_that_runs_is_well_and_one_that_has_stopped_is_warned_of(database: TestDatabase) {
    let store = with_run(&database, 0).await;
    store.close().await;
    let service = Listening::start(&["--database", &database.url]);
    let _ = service.get_until(&quota_path(4), |status, _| status == 200);
    let found = doctor(&database.url, &["--listen", &service.address]);
    assert_eq!((found.code, &found.report["fail"]), (0, &json!(0)), "{}", found.report);
    found.expect("listen", "ok", &format!("Headroom {} answers", env!("CARGO_PKG_VERSION")), "");
    found.expect("database", "ok", &database.backend.to_string(), "");
    found.expect("leader demo", "ok", "epoch 1", "");
    found.expect("quota demo:A100", "ok", "fresh", "");
    found.expect("capacity demo:A100", "ok", "500", "");
    found.expect("run demo", "ok", "run-1, last-value, 4h ahead", "");
    assert_eq!(service.stop().code, 0);
    let bytes = || store::sqlite_file(&database.url).unwrap().map(|file| std::fs::read(file).unwrap());
    let before = bytes();
    let found = doctor(&database.url, &[]);
    found.expect("leader demo", "warn", "has stopped", "start quota-service");
    assert_eq!((found.code, doctor(&database.url, &["--strict"]).code), (0, 1));
    assert!(before == bytes(), "the file of the database was changed");
}

async fn a_long_period_between_renewals_is_warned_of_at_the_start_and_by_doctor(database: TestDatabase) {
    with_run(&database, 0).await.close().await;
    let started = |period: &str| Listening::start(&["--database", &database.url, "--refresh-s", period]).stop();
    let cost = "nothing new is admitted in the last 1200 s of each period";
    let (long, short) = (started("3600"), started("600"));
    assert!(long.stderr.contains(cost) && !short.stderr.contains("are renewed every"), "{long:?} {short:?}");
    doctor(&database.url, &["--refresh-s", "3600"]).expect("refresh_s", "warn", cost, "600 or less");
}

async fn faults_of_the_data_are_named_pool_by_pool(database: TestDatabase) {
    // 1. Usage of long ago, and nobody ever computed anything.
    let store = with_usage(&database, 500).await;
    let run = promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, end().hour().unwrap()).await;
    let found = doctor(&database.url, &[]);
    assert_eq!(found.code, 1);
    found.expect("usage demo", "fail", "none in the last week", "datasets ingest");
    found.expect("run demo", "warn", "learned until", "train --cluster demo --promote");
    found.expect("leader demo", "warn", "no service has held", "start quota-service");
    // 2. Under a clock of that time all is well.
    let found = doctor(&database.url, &["--as-of", "latest"]);
    assert_eq!((found.code, &found.report["fail"]), (0, &json!(0)), "{}", found.report);
    found.expect("usage demo", "ok", "the newest hour ended 0 s ago", "");
    // 3. Hours that are missing, a capacity that is, and promises beyond what the model sees.
    database.execute("DELETE FROM capacity").await;
    let hours: Vec<i64> = [30_i64, 31, 32, 40].iter().map(|back| end().plus_s(-back * 3_600).get()).collect();
    for hour in &hours {
        let hour =
            if database.backend == Backend::Postgres { format!("to_timestamp({hour})") } else { hour.to_string() };
        database.execute(&format!("DELETE FROM usage WHERE hour = {hour}")).await;
    }
    let settings = json!({ "guarantee_rate": 0.9, "offered_hours": [1, 8], "aggregation": "auto", "eta_start": 1.0,
        "eta_least": 0.1, "eta_most": 3.0, "min_outcomes": 100, "max_quota_wait_s": 3600, "state_fresh_s": 600 });
    store.put_settings(&pool(POOL), &settings.to_string(), None).await.unwrap();
    let found = doctor(&database.url, &["--as-of", "latest"]);
    found.expect("gaps demo", "warn", "4 hours are missing of the last week", "datasets ingest");
    found.expect("capacity demo:A100", "fail", "not known", "--capacity");
    found.expect("settings demo:A100", "fail", "8h are offered", "train --cluster demo --promote");
    // 4. A model that is damaged.
    let bytes = if database.backend == Backend::Postgres { "'\\x00'" } else { "x'00'" };
    database.execute(&format!("UPDATE checkpoints SET bytes = {bytes}")).await;
    let found = doctor(&database.url, &["--as-of", "latest"]);
    found.expect("run demo", "fail", &format!("{run} cannot serve"), "train runs rollback");
    // 5. A time zone that nobody knows.
    database.execute("UPDATE clusters SET time_zone = 'Moon/Base'").await;
    doctor(&database.url, &[]).expect(
        "calendar demo",
        "fail",
        "is not a time zone",
        "datasets calendar set --cluster demo",
    );
}

async fn an_old_schema_and_a_newer_one_are_named_and_left_as_they_are(database: TestDatabase) {
    at_version(&database, 3).await;
    let found = doctor(&database.url, &[]);
    assert_eq!(found.code, 1, "{}", found.report);
    found.expect("schema", "fail", "version 3", "start quota-service: it migrates the database");
    let applied = "SELECT max(version) FROM _sqlx_migrations";
    assert_eq!(database.numbers(applied).await, [3], "doctor has changed it");
    database.store().await.close().await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        SELECT 9999, 'from the future', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1";
    database.execute(newer).await;
    let found = doctor(&database.url, &[]);
    assert_eq!(found.code, 1);
    found.expect("schema", "fail", "version 9999", "install the newer program");
}

/// Damages the checkpoint of every run.
pub async fn flip_a_byte_of_runs(database: &TestDatabase) {
    let flipped = match database.backend {
        Backend::Postgres => "set_byte(bytes, 9, get_byte(bytes, 9) # 1)",
        Backend::Sqlite => {
            "CAST(substr(bytes, 1, 9) || CASE substr(bytes, 10, 1) WHEN x'00' THEN x'01' ELSE x'00' END
             || substr(bytes, 11) AS BLOB)"
        }
    };
    database.execute(&format!("UPDATE checkpoints SET bytes = {flipped}")).await;
}

async fn a_deep_check_names_a_flipped_byte_of_a_run_or_a_snapshot_and_passes_sound_ones(database: TestDatabase) {
    let store = with_run(&database, 0).await;
    let placed = store.open_journal(&pool(POOL)).await.unwrap().placed;
    let snapshot = PoolSnapshot { seq: 0, snapshot_json: "{\"at\": 12}".to_owned(), accounts_json: None };
    store.put_pool_snapshot(placed.id, &snapshot, 0).await.unwrap();
    let deep = || doctor(&database.url, &["--deep"]);
    let sound = deep();
    sound.expect("checksums of runs", "ok", "1 read, none is damaged", "");
    sound.expect("checksums of snapshots", "ok", "1 read, none is damaged", "");
    let checks = sound.report["checks"].as_array().unwrap().iter();
    assert!(checks.clone().all(|check| check["status"] != "fail"), "{}", sound.report);
    flip_a_byte_of_runs(&database).await;
    let found = deep();
    found.expect("checksums of runs", "fail", "run-1", "database restore");
    found.expect("checksums of snapshots", "ok", "1 read", "");
    database.execute("UPDATE pool_snapshots SET snapshot_json = '{\"at\": 13}'").await;
    let found = deep();
    assert_eq!(found.code, 1);
    found.expect("checksums of snapshots", "fail", POOL, "database restore");
}

async fn tokens_that_expire_are_named_and_other_machines_need_one(database: TestDatabase) {
    let store = with_usage(&database, 500).await;
    let found = doctor(&database.url, &["--as-of", "latest", "--listen", "0.0.0.0:0"]);
    found.expect("tokens", "fail", "no token is valid", "quota-service token create");
    let now = quota_service::clock::Clock::real().now();
    for (id, left_s) in [("gone", -7_200), ("soon", 6 * 86_400), ("late", 8 * 86_400)] {
        let token = TokenRecord {
            id: id.to_owned(),
            name: format!("of {id}"),
            role: Role::Read,
            organization: None,
            pools: Vec::new(),
            secret_sha256: vec![0; 32],
            created_at: now.plus_s(-86_400),
            expires_at: Some(now.plus_s(left_s)),
            revoked_at: None,
        };
        store.insert_token(&token).await.unwrap();
    }
    let found = doctor(&database.url, &["--as-of", "latest", "--listen", "0.0.0.0:0"]);
    found.expect("tokens", "ok", "2 valid", "");
    found.expect("token gone", "warn", "of gone: expired 2 h ago", "quota-service token revoke gone");
    found.expect("token soon", "warn", "expires in", "quota-service token create");
    assert!(!found.report.to_string().contains("token late"), "{}", found.report);
    for id in ["soon", "late"] {
        let _ = store.revoke_token(id, now).await.unwrap();
    }
    let found = doctor(&database.url, &["--as-of", "latest"]);
    found.expect("tokens", "fail", "all tokens are revoked or expired", "quota-service token create");
}

#[tokio::test]
async fn a_database_that_is_missing_or_gone_ends_with_five_and_is_not_made() {
    let missing = fresh_database(Backend::Sqlite).await;
    let found = doctor(&missing.url, &[]);
    assert_eq!(found.code, 5);
    found.expect("database", "fail", "there is no database file", "run datasets ingest to create it");
    assert!(!store::sqlite_file(&missing.url).unwrap().unwrap().exists(), "it was made");
    let database = fresh_database(Backend::Postgres).await;
    let network = Proxy::to(&database.url).await;
    network.inject(Fault::Gone);
    let url = network.url(&database.url);
    let found = tokio::task::spawn_blocking(move || doctor(&url, &[])).await.unwrap();
    assert_eq!(found.code, 5, "{}", found.report);
    found.expect("database", "fail", "cannot be reached", "start the database");
}

#[tokio::test]
async fn a_clock_that_is_not_that_of_the_database_is_named() {
    let database = fresh_database(Backend::Postgres).await;
    database.store().await.close().await;
    for (seconds, status) in [(5, "warn"), (600, "fail")] {
        let ahead = format!(
            "CREATE SCHEMA IF NOT EXISTS ahead;
             CREATE OR REPLACE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
                 $$SELECT pg_catalog.clock_timestamp() + interval '{seconds} s'$$;
             DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = ahead, pg_catalog, public', current_database()); END$$"
        );
        database.execute(&ahead).await;
        doctor(&database.url, &[]).expect("clock skew", status, "ahead of that of this machine", "timedatectl");
    }
}

#[tokio::test]
async fn a_calendar_is_warned_of_before_its_years_are_over() {
    let database = fresh_database(Backend::Sqlite).await;
    let store = with_usage(&database, 500).await;
    let name = "CN".to_owned();
    let last = datasets::Calendar::parse("UTC", &name).unwrap().covered_years().unwrap().into_inner().1;
    let demo = Cluster { name: cluster("demo"), time_zone: "Asia/Shanghai".to_owned(), calendar: name };
    store.put_cluster(&demo).await.unwrap();
    for (day, status) in [("10-01", "ok"), ("12-01", "warn")] {
        let found = doctor(&database.url, &["--as-of", &format!("{last}-{day}T00:00:00Z")]);
        let fix = if status == "ok" { "" } else { "datasets calendar set --cluster demo CN+own.csv" };
        found.expect("calendar demo", status, &format!("known until {last}-12-31"), fix);
    }
}

#[tokio::test]
async fn a_service_whose_database_refuses_writes_is_named() {
    let database = fresh_database(Backend::Postgres).await;
    with_run(&database, 0).await.close().await;
    let service = Listening::start(&["--database", &database.url]);
    let _ = service.get_until("/readyz", |status, _| status == 200);
    database
        .execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100';
             END $$;
             CREATE TRIGGER refuse BEFORE UPDATE ON write_proof FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    let _ = service.get_until("/readyz", |status, _| status == 503);
    let found = doctor(&database.url, &["--listen", &service.address]);
    found.expect("listen", "fail", "takes no writes: ", "/readyz says when");
    assert_eq!(found.code, 1, "{}", found.report);
    assert_eq!(service.stop().code, 0);
}

#[tokio::test]
async fn a_port_that_another_program_has_is_refused_with_its_name() {
    let database = fresh_database(Backend::Sqlite).await;
    let _ = with_usage(&database, 500).await;
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap().to_string();
    let found = doctor(&database.url, &["--as-of", "latest", "--listen", &address]);
    found.expect("listen", "fail", &format!("(process {})", std::process::id()), "set listen to another port");
    drop(stranger);
    // A service without HTTPS beside settings that have it.
    let service = Listening::start(&["--database", &database.url, "--as-of", "latest"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let key = KeyPair::generate().unwrap();
    std::fs::write(path("own.pem"), CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(path("own.key"), key.serialize_pem()).unwrap();
    let lines = format!("tls_certificate_file = {:?}\ntls_key_file = {:?}", path("own.pem"), path("own.key"));
    std::fs::write(path("tls.toml"), format!("[quota-service]\n{lines}\n")).unwrap();
    let found =
        doctor(&database.url, &["--as-of", "latest", "--listen", &service.address, "--config", &path("tls.toml")]);
    found.expect("listen", "warn", "answers there over HTTP", "restart it");
    assert_eq!(service.stop().code, 0);
    doctor(&database.url, &["--as-of", "latest", "--listen", &address]).expect("listen", "ok", "is free", "");
}

#[test]
fn settings_that_are_refused_and_files_that_are_missing_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (config, url) = (path("headroom.toml"), format!("sqlite://{}", path("headroom.db")));
    let with = |lines: &str| {
        std::fs::write(&config, format!("[quota-service]\n{lines}\n")).unwrap();
        doctor(&url, &["--config", &config])
    };
    let found = with("refresh = 3");
    assert_eq!(found.code, 4);
    found.expect("settings", "fail", "did you mean \"refresh_s\"", "config show --origin");
    let found = with(&format!("retrain = \"daily\"\ntrain_program = {:?}", path("train")));
    assert_eq!(found.code, 4);
    found.expect("settings", "fail", "train_program: ", "config show --origin");
    let key = KeyPair::generate().unwrap();
    let mut expired = CertificateParams::new(vec![]).unwrap();
    expired.not_after = date_time_ymd(2020, 5, 17);
    std::fs::write(path("old.pem"), expired.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(path("old.key"), key.serialize_pem()).unwrap();
    let tls = |name: &str| format!("tls_certificate_file = {:?}\ntls_key_file = {:?}", path(name), path("old.key"));
    let webhook = "webhook_url = \"http://127.0.0.1:9/x\"\nwebhook_secret_file = \"/missing\"";
    let fallback = "fallback_file = \"/missing/last.json\"";
    let traces = format!("otlp_endpoint = \"http://{}\"", tests::free_address());
    let found = with(&[&tls("old.pem"), webhook, fallback, &traces].join("\n"));
    found.expect("traces", "warn", "spans are dropped", "start the collector");
    found.expect("tls", "fail", "has expired at 2020-05-17T00:00:00Z", "renew");
    found.expect("webhook", "fail", "/missing", "webhook_secret_file");
    found.expect("disk of fallback_file", "fail", "/missing", "mkdir -p /missing");
    with(&tls("new.pem")).expect("tls", "fail", "new.pem", "tls_certificate_file");
    let runs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let found = doctor(&url, &["--config", &config, "--listen", &runs.local_addr().unwrap().to_string()]);
    found.expect("listen", "warn", "cannot be asked before the certificate can be read", "a service that runs goes on");
    assert!(!folder.path().join("headroom.db").exists(), "it was made");
}
