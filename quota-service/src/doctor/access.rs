//! Checks of the access tokens.

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
    let valid = standing.iter().filter(|token| left_s(token).is_none_or(|left| left > 0)).count();
    let mut checks = vec![match (valid, config.listen.ip().is_loopback()) {
        (0, false) => {
            let found = format!("no token is valid, and other machines reach {}", config.listen);
            Check::fail("tokens", found, format!("{MAKE}, or set listen to 127.0.0.1"))
        }
        (0, true) if tokens.is_empty() => Check::ok("tokens", "no tokens: every user of this machine has all rights"),
        (0, true) => {
            Check::fail("tokens", "all tokens are revoked or expired: the service refuses every request", MAKE)
        }
        (count, _) => Check::ok("tokens", format!("{count} valid")),
    }];
    for token in standing {
        let TokenRecord { id, name, .. } = token;
        let label = format!("token {id}");
        match left_s(token) {
            Some(left) if left <= 0 => checks.push(Check::warn(
                label,
                format!("{name}: expired {} ago", span(-left)),
                format!("quota-service token revoke {id}; create a new one where it is needed"),
            )),
            Some(left) if left < EXPIRES_WARN_S => {
                checks.push(Check::warn(label, format!("{name}: expires in {}", span(left)), MAKE));
            }
            _ => {}
        }
    }
    checks
}
