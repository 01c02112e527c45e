//! State learned of one pool, kept from renewal to renewal.

use crate::bounds::ForecastBound;
use crate::jobs::{HourUsage, ListFault, dropped, ended_until, jobs_missing};
use forecaster::DamagedBytes;
use forecaster::jobs::{JobExpert, PastJobs, SeenJobs, SharedBound};
use forecaster::live::{LiveBound, Mixed};
use forecaster::risk::{Controlled, Moment, Outcome, RiskControl, Stated};
use forecaster::watched::{Measured, Served, Watched};
use placement::eta::Ended;
use placement::{Bound, Supply};
use vocab::{GuaranteeRate, HorizonHours, HpJob, MilliGpus, UnixSeconds};

/// Renewals closer together than this teach nothing of how much demand moves: that is measured at even intervals.
const LEAST_INTERVAL_S: i64 = 150;
/// In the first length of [`Learned::live_bytes`]: jobs follow. Earlier programs wrote none.
const WITH_JOBS: u64 = 1 << 63;

/// State learned of one pool, at one guarantee rate and for one number of hours.
#[derive(Debug, PartialEq)]
pub struct Learned {
    /// Of demand that is known from moment to moment.
    live: LiveBound,
    /// Of the HP jobs behind it.
    jobs: JobExpert,
    risk: RiskControl,
    /// The bounds that were served, and what became of them.
    watched: Watched,
}

/// A derived copy would be compiled in the service, which is not optimized; each renewal of a pool makes one.
impl Clone for Learned {
    fn clone(&self) -> Self {
        let Self { live, jobs, risk, watched } = self;
        Self { live: live.clone(), jobs: jobs.clone(), risk: risk.clone(), watched: watched.clone() }
    }
}

/// How the bounds moved with what demand does from moment to moment.
#[derive(Debug, Clone)]
pub struct Moving {
    /// HP GPUs, running and waiting, now.
    pub hp_demand: MilliGpus,
    /// For each of the offered hours up to the last known one; empty where nothing is known.
    pub mixed: Vec<Mixed>,
    /// The same, mixed with the bounds of the jobs, or these alone; empty where no jobs are known.
    pub shared: Vec<SharedBound>,
    /// Numbers of the jobs that are known; none where jobs are not.
    pub jobs: Option<SeenJobs>,
}

impl Moving {
    /// The bound at the place of offered hours, no less than what is needed already; none where nothing is known.
    #[must_use]
    pub fn demand_bound(&self, place: usize) -> Option<MilliGpus> {
        let Some(shared) = self.shared.get(place) else {
            return self.mixed.get(place).map(|mixed| mixed.demand_bound(self.hp_demand));
        };
        let bound = MilliGpus::rounded_up(shared.bound_gpus.max(0.0)).unwrap_or(MilliGpus::from_gpus(u32::MAX));
        Some(bound.max(self.hp_demand))
    }
}

impl Learned {
    /// A learner that has seen nothing.
    #[must_use]
    pub fn new(rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let (live, risk) = (LiveBound::new(rate, offered), RiskControl::new(rate, offered));
        Self { live, jobs: JobExpert::new(rate, offered), risk, watched: Watched::new(rate, offered) }
    }

    /// For another rate and other hours: what still holds stays known.
    #[must_use]
    pub fn made_for(self, rate: GuaranteeRate, offered: &[HorizonHours]) -> Self {
        let (live, risk) = (self.live.made_for(rate, offered), self.risk.made_for(rate, offered));
        Self { live, jobs: self.jobs.made_for(rate, offered), risk, watched: self.watched.made_for(rate, offered) }
    }

    /// The learned risk as bytes: a few hundred, different at each renewal.
    #[must_use]
    pub fn risk_bytes(&self) -> Vec<u8> {
        self.risk.to_bytes()
    }

    /// The learned moves of demand, the ends of the bounds that were served, and the jobs, as bytes: tens of thousands, and with
    /// jobs hundreds of thousands, of which a renewal changes few. Each part but the last with its length before it; the first
    /// length has [`WITH_JOBS`] added.
    #[must_use]
    pub fn live_bytes(&self) -> Vec<u8> {
        let (live, watched) = (self.live.to_bytes(), self.watched.to_bytes());
        let lengths = [live.len() as u64 + WITH_JOBS, watched.len() as u64].map(u64::to_le_bytes);
        [&lengths[0][..], &live, &lengths[1], &watched, &self.jobs.to_bytes()].concat()
    }

    /// From [`risk_bytes`](Self::risk_bytes) and, maybe of an earlier renewal, [`live_bytes`](Self::live_bytes).
    ///
    /// # Errors
    /// They are not what was written.
    pub fn from_bytes(risk: &[u8], live: &[u8]) -> Result<Self, DamagedBytes> {
        let (length, rest) = live.split_first_chunk().ok_or_else(DamagedBytes::cut_off)?;
        let length = u64::from_le_bytes(*length);
        let has_jobs = length >= WITH_JOBS;
        let (live, rest) = part(if has_jobs { length - WITH_JOBS } else { length }, rest)?;
        let (live, risk) = (LiveBound::from_bytes(live)?, RiskControl::from_bytes(risk)?);
        if !has_jobs {
            let jobs = JobExpert::new(live.rate(), &live.offered());
            return Ok(Self { live, jobs, risk, watched: Watched::from_bytes(rest)? });
        }
        let (length, rest) = rest.split_first_chunk().ok_or_else(DamagedBytes::cut_off)?;
        let (watched, jobs) = part(u64::from_le_bytes(*length), rest)?;
        let jobs = JobExpert::from_bytes(jobs)?.unwrap_or_else(|| JobExpert::new(live.rate(), &live.offered()));
        Ok(Self { live, jobs, risk, watched: Watched::from_bytes(watched)? })
    }

    /// How the bounds that were served fared, by hours.
    #[must_use]
    pub fn served(&self, now: UnixSeconds) -> Vec<Served> {
        self.watched.served(now)
    }

    /// Whether bounds move to what keeps the promise. Before, they are those of the peak.
    #[must_use]
    pub fn is_known(&self, now: UnixSeconds) -> bool {
        self.risk.is_known(now)
    }

    /// Seconds for which the pool was watched.
    #[must_use]
    pub fn watched_s(&self, now: UnixSeconds) -> i64 {
        self.risk.watched_s(now)
    }

    /// Learns the HP jobs that run and wait now, of a pool whose tasks are placed here.
    pub(crate) fn observe(&mut self, now: UnixSeconds, jobs: &[HpJob]) {
        self.jobs.observe(now, jobs);
    }

    /// Learns the HP jobs that another scheduler lists, and says what is wrong with the list. `usage` are the last hours, newest first.
    pub(crate) fn observe_listed(
        &mut self,
        now: UnixSeconds,
        (jobs, hp_demand): (&[HpJob], MilliGpus),
        usage: &[HourUsage],
    ) -> Option<ListFault> {
        self.jobs.observe_listed(now, jobs);
        let now_gpus = hp_demand.as_gpus();
        if let Some(until) = ended_until(usage, self.jobs.history(), (now, now_gpus)) {
            self.jobs.end_dropped(until);
        }
        let missing = jobs_missing(usage, self.jobs.history());
        let dropped = || self.jobs.history().dropped().map(|jobs| dropped(usage, jobs, now_gpus));
        missing.map(ListFault::Missing).or_else(dropped)
    }

    /// Mixes forecast bounds with what demand does and, where `has_jobs`, what the jobs of this moment tell (`past` are those of a
    /// list, where there is one); learns the demand of this moment.
    pub(crate) fn mix(
        &mut self,
        (now, hp_demand): (UnixSeconds, MilliGpus),
        (has_jobs, past): (bool, Option<&PastJobs>),
        forecast: Option<&[ForecastBound]>,
    ) -> Moving {
        let gpus: Option<Vec<f64>> = forecast.map(|all| all.iter().map(|one| one.bound.as_gpus()).collect());
        let is_early = self.live.learned_at().is_some_and(|last| now.since_s(last) < LEAST_INTERVAL_S);
        let mixed = if is_early {
            self.live.clone().mix(now, hp_demand.milli(), gpus.as_deref())
        } else {
            self.live.mix(now, hp_demand.milli(), gpus.as_deref())
        };
        let others: Vec<f64> = mixed.iter().map(|one| one.bound_gpus).collect();
        let seed = now.get().unsigned_abs();
        // A forecast knows the hours of the day, which windows of an hour do not.
        let is_early = forecast.is_none();
        let shared = has_jobs.then(|| self.jobs.mix((now, hp_demand.milli()), (past, is_early), &others, seed));
        let jobs = shared.is_some().then(|| self.jobs.history().seen());
        Moving { hp_demand, shared: shared.unwrap_or_default(), jobs, mixed }
    }

    /// Moves bounds of the peak to what keeps the promise, and learns the demand of this moment and what became of promises
    /// since the last one; `ended` are the newest of them. Where tasks are placed outside (`is_placed_here` is
    /// false) outcomes may come late or not at all, so that measured peaks teach there in any case.
    pub(crate) fn control(
        &mut self,
        moment: &Moment,
        supply: &Supply,
        peak: &[Bound],
        ended: &[Ended],
        is_placed_here: bool,
    ) -> Vec<Controlled> {
        let outcome = |one: &Ended| {
            let gpus = one.period.gpus_milli as f64 / 1_000.0;
            Outcome {
                number: one.number,
                hours: one.hours,
                broken_gpus: if one.period.broken { gpus } else { 0.0 },
                exposed_gpus: gpus * one.period.lasted_s as f64 / one.hours.seconds() as f64,
            }
        };
        self.risk.learn(ended.iter().map(outcome), moment.now, moment.capacity);
        let stated = |one: &Bound| Stated {
            bound_gpus: one.bound.as_gpus(),
            is_sold: is_placed_here && !supply.spot(one.hours).is_zero(),
        };
        let stated: Vec<_> = peak.iter().map(stated).collect();
        self.risk.control(moment, &stated)
    }

    /// Notes that these bounds are served from this moment on, before what people asked for.
    pub(crate) fn watch(&mut self, moment: &Moment, bounds: &[Bound], is_known_now: bool) {
        let bounds: Vec<MilliGpus> = bounds.iter().map(|one| one.bound).collect();
        let measured = if is_known_now { Measured::ByMoment } else { Measured::ByHour };
        self.watched.note(moment, &bounds, measured);
    }
}

/// A part of so many bytes, and what follows it.
fn part(length: u64, bytes: &[u8]) -> Result<(&[u8], &[u8]), DamagedBytes> {
    let length = usize::try_from(length).ok();
    length.and_then(|length| bytes.split_at_checked(length)).ok_or_else(DamagedBytes::cut_off)
}
