//! The quota file that `job_submit.lua` reads: lines of words, so that Lua needs no library.
//!
//! ```text
//! headroom-quota 1
//! expires 1795594500
//! require_type 1
//! limit spot1h 1 a100 12 8      QOS or account, hours, type, limit, held
//! ```

use crate::config::{Config, Nesting};
use crate::limits::{ALL_GPUS, ByName, Tres};
use std::fmt::Write;
use vocab::UnixSeconds;

/// Word for GPUs of any type.
const ANY_TYPE: &str = "*";

/// Content of the file.
#[must_use]
pub fn text(config: &Config, limits: &ByName, held: &ByName, now: UnixSeconds) -> String {
    let expires = now.plus_s(i64::try_from(config.hook_valid_s).unwrap_or(i64::MAX));
    let mut text = format!("headroom-quota 1\nexpires {}\n", expires.get());
    let by = match config.nesting {
        Nesting::Qos => "qos",
        Nesting::Accounts => "account",
    };
    let _ = writeln!(text, "by {by}");
    let types = limits.values().flat_map(Tres::keys).filter(|name| *name != ALL_GPUS);
    let count = types.collect::<std::collections::BTreeSet<_>>().len();
    let _ = writeln!(text, "require_type {}", u8::from(config.require_type && count > 1));
    for (hours, name) in config.limited().promised() {
        for (tres, limit) in limits.get(name).into_iter().flatten() {
            let gpu_type = tres.strip_prefix(ALL_GPUS).and_then(|rest| rest.strip_prefix(':')).unwrap_or(ANY_TYPE);
            let held = held.get(name).and_then(|held| held.get(tres)).copied().unwrap_or(0);
            let _ = writeln!(text, "limit {name} {} {gpu_type} {limit} {held}", hours.get());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_a_line_for_each_limit_and_says_when_it_expires() {
        let config = Config { spot_qos: "spot1h=1,spot4h=4,free=0".parse().unwrap(), ..Config::default() };
        let tres = |list: &[(&str, u64)]| list.iter().map(|(name, gpus)| ((*name).to_owned(), *gpus)).collect::<Tres>();
        let limits: ByName = [
            ("spot1h".to_owned(), tres(&[("gres/gpu", 20), ("gres/gpu:a100", 12), ("gres/gpu:h100", 8)])),
            ("spot4h".to_owned(), tres(&[("gres/gpu", 4)])),
        ]
        .into();
        let held: ByName = [("spot1h".to_owned(), tres(&[("gres/gpu", 9), ("gres/gpu:a100", 9)]))].into();
        let expected = "headroom-quota 1\nexpires 1180\nby qos\nrequire_type 1\nlimit spot1h 1 * 20 9\nlimit spot1h 1 a100 12 9\n\
            limit spot1h 1 h100 8 0\nlimit spot4h 4 * 4 0\n";
        assert_eq!(text(&config, &limits, &held, UnixSeconds::new(1_000)), expected);
    }
}
