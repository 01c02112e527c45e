//! The files that the settings name.

use super::{Check, SECONDS_PER_DAY, span};
use crate::config::Config;
use crate::retrain::{self, Period};
use serving::certificate;
use vocab::UnixSeconds;

/// Time for a renewal by hand.
const CERTIFICATE_WARN_S: i64 = 30 * SECONDS_PER_DAY;

/// Checks of the files that the settings name.
pub fn of(config: &Config, now: UnixSeconds) -> Vec<Check> {
    [tls(config, now), webhook(config), power(config), Some(train(config))].into_iter().flatten().collect()
}

fn tls(config: &Config, now: UnixSeconds) -> Option<Check> {
    let fix = "correct tls_certificate_file, tls_key_file and tls_client_ca_file";
    match config.tls() {
        Ok(None) => return None,
        Err(why) => return Some(Check::fail("tls", why, fix)),
        Ok(Some(_)) => {}
    }
    let file = &config.tls_certificate_file.to_string();
    let valid = std::fs::read(file).ok().and_then(|pem| certificate::valid(&pem));
    Some(valid.map_or_else(
        || Check::warn("tls", format!("{file}: cannot read its expiry"), fix),
        |valid| expiry(file, (UnixSeconds::new(*valid.start()), UnixSeconds::new(*valid.end())), now),
    ))
}

fn expiry(file: &str, (from, until): (UnixSeconds, UnixSeconds), now: UnixSeconds) -> Check {
    let left_s = until.since_s(now);
    let fix = format!("renew {file}, with the certificates behind the first: a running service reads it again");
    if now < from && left_s > 0 {
        return Check::fail(
            "tls",
            format!("{file} is not valid before {from}"),
            "set another certificate, or correct the clock",
        );
    }
    match left_s {
        ..=0 => Check::fail("tls", format!("{file} has expired at {until}"), fix),
        1..CERTIFICATE_WARN_S => Check::warn("tls", format!("{file} expires in {}, at {until}", span(left_s)), fix),
        _ => Check::ok("tls", format!("{file} is valid until {until}")),
    }
}

fn webhook(config: &Config) -> Option<Check> {
    match config.webhook() {
        Ok(None) => None,
        Ok(Some(_)) => {
            let signed = if config.webhook_secret_file.is_none() { "not signed" } else { "signed" };
            Some(Check::ok("webhook", format!("{}, {signed}", place(config.webhook_url.as_str()))))
        }
        Err(why) => Some(Check::fail(
            "webhook",
            why,
            "set webhook_secret_file to a file of at least 16 bytes, and webhook_authorities_file to certificates (PEM)",
        )),
    }
}

/// Scheme, host and port: the rest of a URL may be a secret.
fn place(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{}", authority.rsplit('@').next().unwrap_or_default())
}

fn power(config: &Config) -> Option<Check> {
    config.power_file.get()?;
    Some(match config.power() {
        Ok(_) => Check::ok("power_file", &config.power_file),
        Err(why) => Check::fail("power_file", why, "correct power_file"),
    })
}

/// Settings with a missing program are refused before.
fn train(config: &Config) -> Check {
    if config.retrain == Period::Never {
        return Check::ok("retraining", "retrain = \"never\": an operator trains by hand");
    }
    match retrain::program(config.train_program.get()) {
        Ok(program) => Check::ok("retraining", format!("{} with {}", config.retrain, program.display())),
        Err(why) => Check::fail("retraining", why, "set train_program"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_certificate_is_warned_of_for_a_month_before_it_expires() {
        let status = |left_s| {
            expiry("x.pem", (UnixSeconds::new(0), UnixSeconds::new(1_000_000 + left_s)), UnixSeconds::new(1_000_000))
                .status
        };
        assert_eq!([-1, 0].map(status), [Status::Fail; 2]);
        assert_eq!([1, CERTIFICATE_WARN_S - 1].map(status), [Status::Warn; 2]);
        assert_eq!(status(CERTIFICATE_WARN_S), Status::Ok);
    }
}
