//! Checks of the sources of usage and the answers of their queries.

use super::Check;
use crate::config::Config;
use crate::source;
use ::prometheus::{ProbedQuery, probe};
use vocab::UnixSeconds;

/// Hours of which each query is asked: as many as the service reads again.
const ASKED_HOURS: u32 = 3;
/// Less than a tenth missing is a scrape that was late.
const MISSING_SHARE: f64 = 0.1;

/// Each source of `prometheus_file`, and each of its queries.
pub async fn of(config: &Config, now: UnixSeconds) -> Vec<Check> {
    let Some(file) = config.prometheus_file.get() else { return Vec::new() };
    let sources = match source::read(file) {
        Ok(sources) => sources,
        Err(fault) => return vec![Check::fail("prometheus", fault, "correct prometheus_file")],
    };
    let mut checks = Vec::new();
    for source in &sources {
        let name = format!("prometheus {}", source.cluster);
        let probe = probe(source, now, ASKED_HOURS).await;
        match &probe.reachable {
            Ok(version) => checks.push(Check::ok(&name, format!("{} answers, version {version}", probe.url))),
            Err(why) => {
                let fix = format!("start it, or correct url, token_file or ca_file of [{}]", source.cluster);
                checks.push(Check::fail(&name, format!("{}: {why}", probe.url), fix));
            }
        }
        checks.extend(probe.queries.iter().map(|query| answered(&name, query)));
    }
    checks
}

fn answered(source: &str, query: &ProbedQuery) -> Check {
    let name = format!("{source} {}", query.name);
    let fix = format!("try the query there: {}", query.query);
    let probed = match &query.outcome {
        Ok(probed) => probed,
        Err(why) => return Check::fail(name, why, fix),
    };
    let missing = probed.missing_share();
    let found = format!(
        "{} series, {} samples over {ASKED_HOURS} h, {:.0} % of the times missing",
        probed.series,
        probed.samples,
        missing * 100.0
    );
    if let Some(warning) = probed.warnings.first() {
        return Check::warn(name, format!("{found}; its warning: {warning}"), fix);
    }
    if missing > MISSING_SHARE || probed.series == 0 {
        return Check::warn(name, format!("{found}: such hours count as missing"), fix);
    }
    Check::ok(name, found)
}
