//! Who may ask.

use super::{Check, SECONDS_PER_DAY, span};
use crate::config::Config;
use store::TokenRecord;
use vocab::UnixSeconds;

/// A week to hand out a new one.
const EXPIRES_WARN_S: i64 = 7 * SECONDS_PER_DAY;
const MAKE: &str = "quota-service token create --name NAME --role admin";

pub fn tokens(tokens: &[TokenRecord], config: &Config, now: UnixSeconds) -> Vec<Check> {
    let standing: Vec<&TokenRecord> = tokens.iter().filter(|token| token.revoked_at.is_none()).collect();
    let left_s = |token: &TokenRecord| token.expires_at.map(|until| until.since_s(now));
    let in_force = standing.iter().filter(|token| left_s(token).is_none_or(|left| left > 0)).count();
    let mut checks = vec![match (in_force, config.listen.ip().is_loopback()) {
        (0, false) => {
            let found = format!("none is in force, and {} is reachable from other machines", config.listen);
            Check::fail("tokens", found, format!("{MAKE}, or set listen to 127.0.0.1"))
        }
        (0, true) if tokens.is_empty() => {
            Check::ok("tokens", "there are none: everybody on this machine may do everything")
        }
        (0, true) => Check::fail("tokens", "there were some, and none is in force: nobody is let in", MAKE),
        (count, _) => Check::ok("tokens", format!("{count} in force")),
    }];
    for token in standing {
        let TokenRecord { id, name, .. } = token;
        let label = format!("token {id}");
        match left_s(token) {
            Some(left) if left <= 0 => checks.push(Check::warn(
                label,
                format!("{name}: it expired {} ago", span(-left)),
                format!("quota-service token revoke {id}; make a new one where it is needed"),
            )),
            Some(left) if left < EXPIRES_WARN_S => {
                checks.push(Check::warn(label, format!("{name}: it expires in {}", span(left)), MAKE));
            }
            _ => {}
        }
    }
    checks
}
