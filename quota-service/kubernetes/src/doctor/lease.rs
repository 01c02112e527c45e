//! Leader, heartbeat, and relations of the times.

use super::Check;
use super::api::Api;
use crate::config::Config;
use crate::publish;
use command_line::span;
use serde_json::Value;
use vocab::UnixSeconds;

/// A beat may be late once without a warning.
const LATE: u64 = 2;

/// Time until another replica or the watchdog acts after the leader died.
pub fn times(config: &Config) -> Check {
    const NAME: &str = "times";
    let Config { lease_s, retry_s, watchdog_after_s, watchdog_check_s, publish_s, poll_s, .. } = config;
    let found = format!(
        "another replica writes within {} s, the watchdog lowers quotas within {} s",
        lease_s + retry_s,
        watchdog_after_s + watchdog_check_s
    );
    if watchdog_after_s <= &(lease_s + retry_s + publish_s) {
        let fix = "set watchdog_after_s above lease_s + retry_s + publish_s";
        return Check::warn(NAME, format!("{found}: each change of leader lowers quotas for a while"), fix);
    }
    if poll_s > publish_s {
        return Check::warn(
            NAME,
            format!("{found}; quotas are requested less often than written"),
            "set poll_s to at most publish_s",
        );
    }
    Check::ok(NAME, found)
}

/// Leader, and heartbeat of the published quotas.
pub async fn of(api: &Api, config: &Config) -> Vec<Check> {
    if !config.writes() {
        return vec![Check::ok("leader", "no mode writes: none is needed")];
    }
    let now = connectors::clock::now();
    let mut checks = vec![leader(&lease(api, config, config.lease_name.as_str()).await, config, now)];
    if config.publishes() {
        let heartbeat = config.heartbeat_name();
        checks.push(beats(&lease(api, config, &heartbeat).await, config, now));
    }
    checks
}

type Found = Result<Option<Value>, String>;

async fn lease(api: &Api, config: &Config, name: &str) -> Found {
    let namespace = &config.lease_namespace;
    api.find(&format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")).await
}

/// By the clock of the writer: precise enough for people, and no decision uses it.
fn age_s(lease: &Value, now: UnixSeconds) -> Option<u64> {
    let renewed = command_line::instant(lease["spec"]["renewTime"].as_str()?).ok()?;
    Some(u64::try_from(now.since_s(renewed)).unwrap_or(0))
}

fn age_text(seconds: u64) -> String {
    span(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn unread(name: &str, why: &str) -> Check {
    Check::fail(name, format!("it cannot be read: {why}"), "let this identity get leases in lease_namespace")
}

fn leader(found: &Found, config: &Config, now: UnixSeconds) -> Check {
    const NAME: &str = "leader";
    let start = "start headroom-kubernetes run";
    let lease = match found {
        Err(why) => return unread(NAME, why),
        Ok(None) => return Check::warn(NAME, "no replica ever wrote here", start),
        Ok(Some(lease)) => lease,
    };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let epoch = lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
    if holder.is_empty() {
        return Check::warn(NAME, "none: the last one gave its lease back", start);
    }
    match age_s(lease, now) {
        Some(age_s) if age_s <= config.lease_s => Check::ok(NAME, format!("{holder}, epoch {epoch}")),
        Some(age_s) => {
            let found =
                format!("{holder} has not renewed for {}, and no other replica has taken over", age_text(age_s));
            Check::warn(NAME, found, start)
        }
        None => Check::warn(NAME, format!("{holder}, but its last renewal cannot be read"), start),
    }
}

fn beats(found: &Found, config: &Config, now: UnixSeconds) -> Check {
    const NAME: &str = "heartbeat";
    let lease = match found {
        Err(why) => return unread(NAME, why),
        Ok(None) => return Check::warn(NAME, "nothing was published here yet", "start headroom-kubernetes run"),
        Ok(Some(lease)) => lease,
    };
    let fix = "read the log of the leader: it gives the reason";
    match age_s(lease, now) {
        Some(age_s) if age_s >= config.watchdog_after_s => {
            Check::fail(NAME, format!("no beat for {}: the watchdog lowers quotas", age_text(age_s)), fix)
        }
        Some(age_s) if age_s > LATE * config.publish_s => Check::warn(
            NAME,
            format!("{} old; the watchdog waits for {} s", age_text(age_s), config.watchdog_after_s),
            fix,
        ),
        Some(age_s) => match publish::not_renewed(lease) {
            named if named.is_empty() => Check::ok(NAME, format!("{} old", age_text(age_s))),
            named => {
                let named: Vec<String> = named.into_iter().collect();
                let found = format!("the leader may not write {}: the watchdog lowers that", named.join(", "));
                let fix = "read its log for the reason: a Role that is missing, a namespace that has gone (take it out of resource_quota_shares), or \
                           another version of Kueue";
                Check::fail(NAME, found, fix)
            }
        },
        None => Check::warn(NAME, "its last renewal cannot be read", fix),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_silent_leader_and_an_old_heartbeat_are_reported() {
        let config = Config::default();
        let renewed = command_line::instant("2026-11-22T10:00:00Z").unwrap();
        let lease = json!({ "spec": {
            "holderIdentity": "one", "leaseTransitions": 3, "renewTime": "2026-11-22T10:00:00.000000Z",
        } });
        let found = Ok(Some(lease));
        let leads = |age_s: i64| leader(&found, &config, renewed.plus_s(age_s)).status;
        assert_eq!([0, 15, 16].map(leads), [Status::Ok, Status::Ok, Status::Warn]);
        let beats = |age_s: i64| beats(&found, &config, renewed.plus_s(age_s)).status;
        assert_eq!([30, 31, 59, 60].map(beats), [Status::Ok, Status::Warn, Status::Warn, Status::Fail]);
        assert_eq!(leader(&Ok(None), &config, renewed).status, Status::Warn);
        assert_eq!(leader(&Err("HTTP 403".to_owned()), &config, renewed).status, Status::Fail);
    }

    #[test]
    fn a_watchdog_faster_than_a_change_of_leader_is_reported() {
        assert_eq!(times(&Config::default()).status, Status::Ok);
        let hasty = Config { watchdog_after_s: 32, ..Config::default() };
        assert_eq!(times(&hasty).status, Status::Warn);
        let lazy = Config { poll_s: 16, ..Config::default() };
        assert_eq!(times(&lazy).status, Status::Warn);
    }
}
