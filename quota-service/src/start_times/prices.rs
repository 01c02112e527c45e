//! The price of each class and guarantee in waiting, and which of them ends in time.

use super::{Known, StartTimes, answer, broken, computed, read, seed, write};
use crate::engine::{EngineError, Facts, ReadFacts};
use placement::pool::Request;
use starts::{Ask, Ends, HORIZON_S, Kind, PoolFacts, Starts};
use vocab::{GuaranteeRate, PoolId, TaskClass, UnixSeconds};
use wire::{Deadline, MomentBody, PriceBody, PriceList};

/// Times of submission that are tried for each price that ends in time: halvings of the time until it would have to run.
const HALVINGS: u32 = 5;

/// The run of a task whose class and guarantee are open.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// How long it runs, in seconds.
    pub runs_s: Option<u64>,
    pub deadline: Option<Deadline>,
}

/// The pool as all prices of a list see it.
struct Market<'a> {
    known: &'a Known,
    facts: &'a PoolFacts,
    seed: u64,
    wanted: Wanted,
}

impl StartTimes {
    /// The price of each class and guarantee: `requests` are the same task under each of them. `guarantee_rate` is p.
    ///
    /// # Errors
    /// The pool cannot take the task, or the database does not answer.
    pub async fn prices(
        &self,
        pool: &PoolId,
        requests: Vec<Request>,
        wanted: Wanted,
        guarantee_rate: GuaranteeRate,
    ) -> Result<PriceList, EngineError> {
        let (known, present) = self.read(pool, ReadFacts { task: None, asked: requests.clone() }).await?;
        let Facts { facts, refusals, .. } = *present;
        let of = pool.clone();
        computed(move || {
            write(&known).observe(&facts);
            let known = read(&known);
            let market = Market { known: &known, facts: &facts, seed: seed(&of), wanted };
            let priced =
                requests.iter().zip(&refusals).map(|(request, refusal)| market.price(request, refusal.is_none()));
            let prices: Vec<PriceBody> = priced.collect::<Result<_, _>>()?;
            let cheapest = prices.iter().position(|price| price.ends_in_time == Some(true));
            Ok(PriceList {
                cluster: of.cluster.to_string(),
                gpu_model: of.gpu_model.to_string(),
                as_of: facts.at().to_string(),
                guarantee_rate: guarantee_rate.as_f64(),
                cheapest_in_time: cheapest.and_then(|place| u32::try_from(place).ok()),
                prices,
            })
        })
        .await
    }
}

impl Market<'_> {
    fn ends(&self, request: &Request, after_s: u32) -> Result<Ends, EngineError> {
        let runs_s = self.wanted.runs_s.map(|runs_s| runs_s as f64);
        let ask = Ask { request: request.clone(), runs_s, after_s };
        self.known.expert.ends(self.facts, &ask, self.seed).ok_or_else(|| broken("no future was played"))
    }

    fn price(&self, request: &Request, starts_now: bool) -> Result<PriceBody, EngineError> {
        let (kind, now) = (Kind::of(request), self.facts.at());
        let Ends { forecast, ends, started_at_once } = self.ends(request, 0)?;
        let (starts, ends) = if starts_now { (Starts::now(), started_at_once) } else { (forecast.starts, ends) };
        let start = answer::body(&starts, now);
        let Deadline { at, probability } = self.wanted.deadline.unwrap_or(Deadline { at: now, probability: 0.9 });
        let by_s = at.since_s(now);
        let ends_by = self.wanted.deadline.map(|_| ends.probability_by(by_s as f64));
        let ends_in_time = ends_by.map(|ends_by| ends_by >= probability);
        let submit_by = if ends_in_time == Some(true) { Some(self.latest(request, by_s, probability)?) } else { None };
        let doubts = if starts_now && self.wanted.runs_s.is_none() { Vec::new() } else { forecast.doubts };
        Ok(PriceBody {
            class: kind.class.into(),
            guarantee_hours: wire::hours_body(kind.hours),
            starts_now,
            text: format!("{}: {}", name(kind), when(starts_now, start.p50.as_ref())),
            start,
            ends: self.wanted.runs_s.and_then(|_| answer::moment(ends.quantile_s(probability), now)),
            ends_by_probability: ends_by,
            ends_in_time,
            submit_by: submit_by.map(|at: UnixSeconds| at.to_string()),
            doubts: doubts.iter().map(|doubt| answer::doubt_body(*doubt, kind, &starts)).collect(),
        })
    }

    /// The latest submission, of those that are tried, with which the task ends in time; it does when submitted now.
    fn latest(&self, request: &Request, by_s: i64, probability: f64) -> Result<UnixSeconds, EngineError> {
        let runs_s = self.wanted.runs_s.map_or(0, |runs_s| i64::try_from(runs_s).unwrap_or(i64::MAX));
        let (mut good_s, mut bad_s) = (0, (by_s - runs_s).clamp(0, i64::from(HORIZON_S)));
        for _ in 0..HALVINGS {
            let middle_s = i64::midpoint(good_s, bad_s);
            let ends = self.ends(request, middle_s as u32)?.ends;
            if ends.probability_by(by_s as f64) >= probability {
                good_s = middle_s;
            } else {
                bad_s = middle_s;
            }
        }
        Ok(self.facts.at().plus_s(good_s))
    }
}

fn name(kind: Kind) -> String {
    match (kind.class, kind.hours) {
        (TaskClass::Hp, _) => "hp".to_owned(),
        (TaskClass::Spot, None) => "spot, at will".to_owned(),
        (TaskClass::Spot, Some(hours)) => format!("spot, {} h", hours.get()),
    }
}

/// The median of a start in words.
fn when(starts_now: bool, p50: Option<&MomentBody>) -> String {
    match p50 {
        _ if starts_now => "now".to_owned(),
        None => format!("not within {} h", HORIZON_S / 3_600),
        Some(moment) if moment.wait_s < 90 * 60 => format!("in {} min", moment.wait_s.div_ceil(60)),
        Some(moment) => format!("in {:.1} h", moment.wait_s as f64 / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_read_in_minutes_or_hours() {
        let words = |wait_s| when(false, Some(&MomentBody { at: String::new(), wait_s }));
        assert_eq!(
            [59, 61, 5_399, 5_400, 86_400].map(words),
            ["in 1 min", "in 2 min", "in 90 min", "in 1.5 h", "in 24.0 h"]
        );
        assert_eq!((when(true, None).as_str(), when(false, None).as_str()), ("now", "not within 72 h"));
    }
}
