//! Checks of a `doctor` that every connector has: Headroom, its pools and quotas, and clocks.

use crate::client::{Headroom, HeadroomError};
use crate::clock;
use crate::report::encoded;
use crate::values::HeadroomUrl;
use axum::http::Method;
use command_line::{Check, ago, shell_word};
use placement::Stage;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{ClusterName, GpuModel, UnixSeconds};
use wire::{PoolList, PoolSummary, StageBody};

const NAME: &str = "headroom";
const TOKEN: &str = "token of headroom";
/// Clocks may differ so far without a word, in seconds.
const SKEW_WARN_S: i64 = 2;
/// From here on Headroom refuses reports as from the future.
const SKEW_FAIL_S: i64 = 60;

/// GPUs by model, as the scheduler's cluster has them.
pub type Gpus = BTreeMap<GpuModel, u64>;

/// A connector, for its fixes.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Name of its program.
    pub program: &'a str,
    /// Headroom's name of the cluster.
    pub cluster: Option<&'a ClusterName>,
    /// URL of quota-service.
    pub url: &'a HeadroomUrl,
    /// Setting that names GPU models.
    pub model_setting: &'a str,
}

/// Whether Headroom answers, and the pools and quotas that it has for this cluster; `here` are the GPUs of the cluster itself.
pub async fn headroom(
    asker: Asker<'_>,
    client: Result<Headroom, HeadroomError>,
    here: Option<&Gpus>,
) -> (Vec<Check>, Option<PoolList>) {
    let failed = |fault: &HeadroomError| (vec![refused(NAME, fault, &asker)], None);
    let client = match client {
        Ok(client) => client,
        Err(fault) => return failed(&fault),
    };
    let asked: Result<(PoolList, Option<String>), HeadroomError> = client.get_dated("/v1/pools").await;
    let now = clock::now();
    let (list, date) = match asked {
        Ok(answered) => answered,
        Err(fault) => return failed(&fault),
    };
    let mut checks = vec![Check::ok(NAME, format!("{} answers", asker.url))];
    checks.extend(may_report(&client, &asker).await);
    let date = date.as_deref().and_then(http_date);
    checks.extend(date.map(|date| skew("clock of headroom", date, now)));
    match out_of_scope(&client, &asker, &list, here).await {
        Some(check) => checks.push(check),
        None => checks.extend(pools(asker, &list, here, now)),
    }
    (checks, Some(list))
}

/// Whether pools of this cluster are missing in the list since the token is of others.
async fn out_of_scope(client: &Headroom, asker: &Asker<'_>, list: &PoolList, here: Option<&Gpus>) -> Option<Check> {
    let cluster = asker.cluster?.as_str();
    if list.pools.iter().any(|pool| pool.cluster == cluster) {
        return None;
    }
    let model = here.and_then(|here| here.keys().next()).map_or("any", GpuModel::as_str);
    let path = format!("/v1/quota?cluster={}&gpu_model={}&hours=1", encoded(cluster), encoded(model));
    let fault = client.get_dated::<Value>(&path).await.err().filter(|fault| fault.status() == Some(403))?;
    Some(refused(TOKEN, &fault, asker))
}

/// Whether Headroom takes reports by this token: it looks at the role before the body, and nothing is stored of this one.
async fn may_report(client: &Headroom, asker: &Asker<'_>) -> Option<Check> {
    let refused = client.send::<Value>(Method::POST, "/v1/outcomes", &json!({})).await.err()?;
    match refused.status()? {
        400 => Some(Check::ok(TOKEN, "it may report")),
        403 => {
            let found = "it may read alone: Headroom refuses what is reported, and quotas know nothing of this cluster; write one of the role report into headroom_token_file";
            Some(Check::fail(TOKEN, found, token_command(asker.program, asker.cluster)))
        }
        // Something else answers there, or answers later.
        _ => None,
    }
}

/// The command that makes the token of a connector, to be pasted into a shell.
#[must_use]
pub fn token_command(program: &str, cluster: Option<&ClusterName>) -> String {
    let scope = cluster.map_or_else(String::new, |cluster| format!(" --pool {}", shell_word(cluster.as_str())));
    format!("quota-service token create --name {program} --role report{scope}")
}

/// A request that failed, and what to do.
fn refused(name: &str, fault: &HeadroomError, asker: &Asker<'_>) -> Check {
    let fix = match fault {
        HeadroomError::Refused { status: 401, .. } => {
            let found = format!("{fault}; write a token into headroom_token_file");
            return Check::fail(name, found, token_command(asker.program, asker.cluster));
        }
        HeadroomError::Refused { status: 403, .. } => "give the token the cluster of this program in its scope",
        HeadroomError::Settings { .. } | HeadroomError::NoId { .. } => "correct the setting",
        HeadroomError::Foreign { .. } => "set headroom_url to the URL of quota-service",
        HeadroomError::Unavailable { .. } | HeadroomError::Refused { .. } => {
            "start quota-service, or set headroom_url to a URL that is reachable from here"
        }
    };
    Check::fail(name, fault, fix)
}

fn pools(asker: Asker<'_>, list: &PoolList, here: Option<&Gpus>, now: UnixSeconds) -> Vec<Check> {
    let cluster = asker.cluster.map(ClusterName::as_str);
    let known: Vec<&PoolSummary> = list.pools.iter().filter(|pool| Some(pool.cluster.as_str()) == cluster).collect();
    if known.is_empty() {
        let others: BTreeSet<&str> = list.pools.iter().map(|pool| pool.cluster.as_str()).collect();
        let others = others.into_iter().collect::<Vec<_>>().join(", ");
        let found =
            format!("Headroom knows no pool of it; it knows: {}", if others.is_empty() { "none" } else { &others });
        let fix = format!("correct cluster, ingest its history, or let {} run report for some weeks", asker.program);
        return vec![Check::fail(format!("cluster {}", cluster.unwrap_or_default()), found, fix)];
    }
    let mut checks: Vec<Check> = known.iter().map(|pool| quota(pool, now)).collect();
    let models: BTreeSet<GpuModel> = known.iter().filter_map(|pool| GpuModel::parse(&pool.gpu_model).ok()).collect();
    if let Some(here) = here {
        checks.extend(both(asker, &models, here));
        checks.extend(known.iter().filter_map(|pool| capacity(asker, pool, here)));
    }
    checks
}

/// Names that differ by a letter make two halves of one pool.
fn both(asker: Asker<'_>, models: &BTreeSet<GpuModel>, here: &Gpus) -> Vec<Check> {
    let there: Vec<String> = models.iter().map(ToString::to_string).collect();
    let setting = asker.model_setting;
    let strange = here.keys().filter(|model| !models.contains(model)).map(|model| {
        let found = format!("nodes have it, but Headroom knows only {}: it gets no quota", there.join(", "));
        Check::warn(
            format!("model {model}"),
            found,
            format!("ingest the history under this name, or correct {setting}"),
        )
    });
    let absent = models.iter().filter(|model| !here.contains_key(model)).map(|model| {
        let found = "Headroom knows it, but no node of the cluster has it";
        Check::warn(format!("model {model}"), found, format!("correct {setting}, or check for missing nodes"))
    });
    strange.chain(absent).collect()
}

/// Another capacity than ours: the table is old, or two clusters report under one name.
fn capacity(asker: Asker<'_>, pool: &PoolSummary, here: &Gpus) -> Option<Check> {
    let gpus = *here.get(&GpuModel::parse(&pool.gpu_model).ok()?)?;
    let known = pool.capacity_gpus?;
    // Nodes come and go between the two counts.
    let is_near = (known - gpus as f64).abs() <= 0.1 * known.max(gpus as f64);
    let found = format!("Headroom counts {}, the cluster has {gpus}", vocab::gpus(known));
    let fix =
        format!("start {} run, which reports them; check that no other cluster reports under this name", asker.program);
    (!is_near).then(|| Check::warn(format!("capacity {}", pool.id), found, fix))
}

fn quota(pool: &PoolSummary, now: UnixSeconds) -> Check {
    let name = format!("quota {}", pool.id);
    let computed = pool.computed_at.as_deref().and_then(|text| command_line::instant(text).ok());
    let (Some(stage), Some(computed)) = (pool.stage, computed) else {
        let why = pool.no_quota.as_deref().unwrap_or("none was computed");
        return Check::fail(name, format!("there is none: {why}"), "run quota-service doctor: it prints the cause");
    };
    // The answer may come from a cache, and a clock may stand still: an old quota is old, even if it says fresh.
    let stage = match placement::staleness::stage(computed, now).0 {
        Stage::Conservative => StageBody::Conservative,
        Stage::Stale if stage == StageBody::Fresh => StageBody::Stale,
        Stage::Fresh | Stage::Stale => stage,
    };
    let found = format!("{stage}, computed {}", ago(now.since_s(computed)));
    match stage {
        StageBody::Fresh => Check::ok(name, found),
        StageBody::Stale => Check::warn(name, found, "run quota-service doctor: it prints the cause"),
        StageBody::Conservative => Check::fail(
            name,
            format!("{found}: nothing new is admitted"),
            "run quota-service doctor: it prints the cause",
        ),
    }
}

/// Whether another's clock agrees with ours. Dates of HTTP are whole seconds, so one second of difference says nothing.
#[must_use]
pub fn skew(name: &str, theirs: UnixSeconds, ours: UnixSeconds) -> Check {
    let ahead_s = theirs.since_s(ours);
    let found = format!("{} s {} of this machine", ahead_s.abs(), if ahead_s < 0 { "behind that" } else { "ahead" });
    let fix = "run timedatectl set-ntp true on the machine whose clock is wrong";
    match ahead_s.abs() {
        0..=SKEW_WARN_S => Check::ok(name, "agrees with the clock of this machine"),
        SKEW_FAIL_S.. => Check::fail(name, found, fix),
        _ => Check::warn(name, found, fix),
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form in which servers write dates (RFC 9110 §5.6.7).
#[must_use]
pub fn http_date(text: &str) -> Option<UnixSeconds> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = parts.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)? + 1;
    command_line::instant(&format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use command_line::Status;

    #[test]
    fn a_date_of_http_is_read_and_a_clock_that_differs_is_reported() {
        let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(date.get(), 784_111_777);
        assert_eq!(http_date("yesterday"), None);
        let status = |ahead_s| skew("clock", date.plus_s(ahead_s), date).status;
        assert_eq!([0, 2, -2].map(status), [Status::Ok; 3]);
        assert_eq!([3, -59].map(status), [Status::Warn; 2]);
        assert_eq!([60, -3_600].map(status), [Status::Fail; 2]);
        assert!(skew("clock", date.plus_s(-5), date).found.starts_with("5 s behind"));
    }

    #[test]
    fn a_quota_that_says_fresh_and_was_computed_long_ago_is_old() {
        let computed = command_line::instant("2026-11-22T10:00:00Z").unwrap();
        let pool: PoolSummary = serde_json::from_value(serde_json::json!({
            "id": "earth:A100", "cluster": "earth", "gpu_model": "A100", "organizations": 1, "offered_hours": [1],
            "capacity_gpus": 64.0, "latest_demand_gpus": 8.0, "quota_gpus_by_hours": {"1": 2.0},
            "computed_quota_gpus_by_hours": {"1": 2.0}, "eta": 1.0, "computed_at": "2026-11-22T10:00:00Z", "stage": "fresh",
            "no_quota": null, "valid_until": null, "guarantee_rate": 0.9, "idle_gpus": 1.0, "spot_gpus_by_hours": {},
            "available_gpus_by_hours": {}, "demand_bound_gpus_by_hours": {}, "hp_demand_gpus": null, "forecast": [],
            "outcomes_24h": {}, "tasks": null, "overrides": 0
        }))
        .unwrap();
        let at = |age_s: i64| quota(&pool, computed.plus_s(age_s));
        assert_eq!([599, 600, 2_400].map(|age_s| at(age_s).status), [Status::Ok, Status::Warn, Status::Fail]);
        assert!(at(7_200).found.starts_with("conservative, computed 2 h ago"), "{}", at(7_200).found);
    }

    /// A service without pools for this token, whose quota is refused with a status.
    async fn of_a_service(quota: u16) -> Vec<String> {
        use axum::http::StatusCode;
        use axum::routing::{get, post};
        let refused = |status: u16| {
            let problem =
                json!({"type": "about:blank", "title": "refused", "status": status, "detail": "earth:A100 is refused"});
            (StatusCode::from_u16(status).unwrap(), axum::Json(problem))
        };
        let router = axum::Router::new()
            .route("/v1/pools", get(|| async { axum::Json(json!({"pools": []})) }))
            .route("/v1/outcomes", post(move || async move { refused(400) }))
            .route("/v1/quota", get(move || async move { refused(quota) }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: HeadroomUrl = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let settings = crate::client::ServiceSettings { url: &url, token_file: None, ca_file: None, agent: "t" };
        let cluster = ClusterName::parse("earth").unwrap();
        let asker = Asker { program: "t", cluster: Some(&cluster), url: &url, model_setting: "gpu_model" };
        let (checks, _) = headroom(asker, Headroom::new(settings), None).await;
        let bad = checks.into_iter().filter(|check| check.status == Status::Fail);
        bad.map(|check| format!("{}: {} → {}", check.name, check.found, check.fix.unwrap_or_default())).collect()
    }

    #[tokio::test]
    async fn a_token_of_other_clusters_is_the_cause_and_not_an_unknown_cluster() {
        let found = of_a_service(403).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("token of headroom: ") && found[0].contains("in its scope"), "{found:?}");
        let found = of_a_service(404).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("cluster earth: Headroom knows no pool of it"), "{found:?}");
    }

    #[test]
    fn a_token_that_is_refused_is_fixed_by_a_command_alone() {
        let (url, cluster) = (HeadroomUrl::default(), ClusterName::parse("mine & yours").unwrap());
        let asker = Asker { program: "headroom-test", cluster: Some(&cluster), url: &url, model_setting: "gpu_model" };
        let (url, detail) = ("http://x/v1/pools".to_owned(), "unknown token".to_owned());
        let fault = HeadroomError::Refused { url, status: 401, detail, problem: None, retry_after: None };
        let check = refused(NAME, &fault, &asker);
        assert!(check.found.ends_with("unknown token; write a token into headroom_token_file"), "{check:?}");
        let command = "quota-service token create --name headroom-test --role report --pool 'mine & yours'";
        assert_eq!(check.fix.as_deref(), Some(command));
        let any = token_command("headroom-test", None);
        assert_eq!(any, "quota-service token create --name headroom-test --role report");
    }
}
