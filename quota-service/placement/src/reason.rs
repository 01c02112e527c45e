//! Reasons, one code for machines and one sentence for people.

use crate::eta::Eta;
use std::fmt;
use vocab::{GuaranteeRate, HorizonHours, MilliGpus, UnixSeconds};

/// Why a quota is what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The forecast's inventory decides.
    Inventory {
        /// Capacity less the bound.
        inventory: MilliGpus,
    },
    /// f = 0.
    DemandMayFillPool {
        /// The bound of HP demand.
        bound: MilliGpus,
        /// GPUs of the pool.
        capacity: MilliGpus,
    },
    /// S0 + Sa decides.
    HeldByIdle {
        /// Idle GPUs and those of spot tasks inside their guarantee.
        ceiling: MilliGpus,
        /// Inventory × eta.
        scaled_inventory: MilliGpus,
    },
    /// A task counts among all shorter guarantees, one of which leaves less.
    HeldByShorterGuarantee {
        /// The shorter guarantee.
        hours: HorizonHours,
        /// GPUs that it leaves.
        available: MilliGpus,
    },
    /// The pool has no GPUs.
    NoCapacity,
    /// Eta scaled the inventory.
    ScaledByEta {
        /// The factor of the inventory.
        eta: Eta,
    },
    /// HP demand is above the capacity.
    DemandAboveCapacity {
        /// HP demand now.
        demand: MilliGpus,
        /// GPUs of the pool.
        capacity: MilliGpus,
    },
    /// The bound or HP demand is above the largest amount, and counts as that.
    DemandBeyondAmounts,
    /// Spot holds more than the quota.
    OverCommitted {
        /// GPUs promised for at least these hours.
        used: MilliGpus,
        /// The quota, which is less.
        quota: MilliGpus,
    },
    /// S0 and Sa are estimates.
    Estimated,
    /// People asked to keep more for HP work than is forecast.
    Reserved {
        /// GPUs that overrides add to the bound.
        gpus: MilliGpus,
    },
    /// GPUs are reserved ahead within the hours of the promise.
    ReservedAhead {
        /// The most GPUs that reserved windows have at one instant.
        gpus: MilliGpus,
    },
    /// Operators expect that HP work will need less than is forecast.
    Released {
        /// GPUs that overrides take from the bound.
        gpus: MilliGpus,
    },
    /// The newest hour of usage was reported in part.
    UsageIncomplete {
        /// Organizations of the pool that have not reported it.
        missing: usize,
        /// Those that reported any hour of the two days before, or this one.
        organizations: usize,
        /// The start of the hour.
        hour: UnixSeconds,
    },
    /// The HP jobs that a scheduler reports are only a part of what the pool uses.
    HpJobsMissing {
        /// Hours that were compared.
        hours: usize,
        /// The mean usage of those hours.
        usage: MilliGpus,
        /// The mean, over those hours, of all jobs that were there within the hour.
        jobs: MilliGpus,
    },
    /// Many HP jobs left the list of a scheduler at once, and count as running.
    HpJobsDropped {
        /// How many.
        jobs: usize,
        /// Their GPUs.
        gpus: MilliGpus,
        /// GPUs of them that count.
        counted: MilliGpus,
        /// The time of the renewal that found them gone.
        since: UnixSeconds,
    },
    /// Some organizations were forecast by the cold-start rule.
    ColdStart {
        /// Organizations that training did not know.
        organizations: usize,
    },
    /// The model has learned from hours that it forecasts here.
    SeenInTraining {
        /// The end of the hours that the model has learned from.
        until: UnixSeconds,
    },
    /// The promise ends after the forecast does; its last step stands for the rest.
    ForecastEndsEarly {
        /// Hours of the clock that the promise covers.
        steps: u8,
        /// Hours that the model forecasts.
        horizon: HorizonHours,
    },
    /// The measurements do not support so large a p for promises of so many hours: they support `supported_ppm`, in millionths.
    RateNotSupported {
        /// Hours of the promise.
        hours: HorizonHours,
        /// The p of the settings.
        rate: GuaranteeRate,
        /// The largest supported p, in millionths.
        supported_ppm: u32,
    },
    /// The quota was not renewed in time.
    NotRenewed {
        /// The time of the last renewal.
        computed_at: UnixSeconds,
    },
    /// Inputs are missing; what this means for the quota stands in the stage.
    InputsMissing {
        /// The missing input.
        what: String,
    },
    /// Held to what spot tasks already have.
    Conservative {
        /// GPUs that spot tasks hold.
        held: MilliGpus,
    },
}

impl Reason {
    /// Stable name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Inventory { .. } => "inventory",
            Self::DemandMayFillPool { .. } => "demand_may_fill_pool",
            Self::HeldByIdle { .. } => "held_by_idle",
            Self::HeldByShorterGuarantee { .. } => "held_by_shorter_guarantee",
            Self::NoCapacity => "no_capacity",
            Self::ScaledByEta { .. } => "scaled_by_eta",
            Self::DemandAboveCapacity { .. } => "demand_above_capacity",
            Self::DemandBeyondAmounts => "demand_beyond_amounts",
            Self::OverCommitted { .. } => "over_committed",
            Self::Estimated => "estimated",
            Self::Reserved { .. } => "reserved",
            Self::ReservedAhead { .. } => "reserved_ahead",
            Self::Released { .. } => "released",
            Self::UsageIncomplete { .. } => "usage_incomplete",
            Self::HpJobsMissing { .. } => "hp_jobs_missing",
            Self::HpJobsDropped { .. } => "hp_jobs_dropped",
            Self::ColdStart { .. } => "cold_start",
            Self::SeenInTraining { .. } => "seen_in_training",
            Self::ForecastEndsEarly { .. } => "forecast_ends_early",
            Self::RateNotSupported { .. } => "rate_not_supported",
            Self::NotRenewed { .. } => "not_renewed",
            Self::InputsMissing { .. } => "inputs_missing",
            Self::Conservative { .. } => "conservative",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inventory { inventory } => {
                write!(f, "{inventory} GPUs stay free of HP demand with the guarantee rate")
            }
            Self::DemandMayFillPool { bound, capacity } => {
                write!(f, "HP demand may reach {bound} of {capacity} GPUs")
            }
            Self::HeldByIdle { ceiling, scaled_inventory } => write!(
                f,
                "idle GPUs and those of spot tasks inside their guarantee are {ceiling}, below the {scaled_inventory} \
                 that the forecast leaves"
            ),
            Self::HeldByShorterGuarantee { hours, available } => write!(
                f,
                "the guarantee of {hours} leaves {available} GPUs, and a task with a longer one counts in it, too"
            ),
            Self::NoCapacity => f.write_str("the pool has no GPUs"),
            Self::ScaledByEta { eta } => write!(f, "eta is {eta}"),
            Self::DemandAboveCapacity { demand, capacity } => {
                write!(f, "HP demand is {demand} GPUs, above the capacity of {capacity}")
            }
            Self::DemandBeyondAmounts => beyond_amounts(f),
            Self::OverCommitted { used, quota } => write!(
                f,
                "spot tasks hold {used} GPUs, more than the quota of {quota}: nothing new is admitted and nothing \
                 evicted for it"
            ),
            Self::Estimated => f.write_str(ESTIMATED),
            Self::Reserved { gpus } => write!(f, "{gpus} GPUs more than forecast are kept for HP work: see overrides"),
            Self::ReservedAhead { gpus } => write!(f, "{gpus} GPUs are reserved: no promise reaches into a window"),
            Self::Released { gpus } => write!(f, "{gpus} GPUs fewer than forecast are kept for HP work: see overrides"),
            Self::UsageIncomplete { missing, organizations: all, hour } => partly(f, *missing, *all, *hour),
            Self::HpJobsMissing { hours, usage, jobs } => jobs_missing(f, *hours, *usage, *jobs),
            Self::HpJobsDropped { jobs, gpus, counted, since } => jobs_dropped(f, (*jobs, *gpus), *counted, *since),
            Self::ColdStart { organizations } => write!(f, "{}", cold_start(*organizations)),
            Self::SeenInTraining { until } => write!(
                f,
                "the model has learned from hours until {until}, these among them: the forecast shows what it remembers, \
                 not what it can do"
            ),
            Self::ForecastEndsEarly { steps, horizon } => write!(
                f,
                "the promise covers {} of the clock and the model forecasts {horizon}: its last step stands \
                 for the rest; train a longer horizon",
                vocab::count(steps, "hour")
            ),
            Self::RateNotSupported { hours, rate, supported_ppm } => not_supported(f, *hours, *rate, *supported_ppm),
            Self::NotRenewed { computed_at } => write!(f, "computed at {computed_at} and not renewed since"),
            Self::InputsMissing { what } => write!(f, "inputs are missing: {what}"),
            Self::Conservative { held } => {
                write!(f, "held to the {held} GPUs that spot tasks already have: nothing new, no eviction")
            }
        }
    }
}

const ESTIMATED: &str =
    "no fresh state was reported: idle GPUs are capacity less the latest demand, spot GPUs count as none";

fn beyond_amounts(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "HP demand exceeds the limit of {} GPUs and counts as that many: correct the usage of the pool's organizations, which \
         states GPUs, not thousandths or bytes",
        MilliGpus::MAX_GPUS
    )
}

fn partly(f: &mut fmt::Formatter<'_>, missing: usize, organizations: usize, hour: UnixSeconds) -> fmt::Result {
    let all = vocab::count(organizations, "organization");
    write!(
        f,
        "{missing} of {all} have not reported the hour from {hour}, zeros included: the last known demand of each stands for it"
    )
}

fn jobs_dropped(
    f: &mut fmt::Formatter<'_>,
    (jobs, gpus): (usize, MilliGpus),
    counted: MilliGpus,
    since: UnixSeconds,
) -> fmt::Result {
    write!(
        f,
        "{} with {gpus} GPUs left the reported list together, the last at {since}: {counted} of these GPUs count as used until the jobs are \
         listed again, or usage of a whole hour shows that they ended",
        vocab::count(jobs, "HP job")
    )
}

fn jobs_missing(f: &mut fmt::Formatter<'_>, hours: usize, usage: MilliGpus, jobs: MilliGpus) -> fmt::Result {
    write!(
        f,
        "the reported HP jobs are {jobs} GPUs in the last {}, and usage is {usage}: bounds follow usage until the listed jobs cover that of a whole hour; report all HP jobs (hp_jobs), or none",
        vocab::count(hours, "hour")
    )
}

fn cold_start(organizations: usize) -> String {
    let new = vocab::count(organizations, "organization").verb("is", "are");
    format!("{new} new to the model and forecast by the highest hour")
}

fn not_supported(
    f: &mut fmt::Formatter<'_>,
    hours: HorizonHours,
    rate: GuaranteeRate,
    supported_ppm: u32,
) -> fmt::Result {
    write!(
        f,
        "{rate} is asked for, and what was measured beside forecasts so far shows a rate of {:.3} at most for promises of \
         {hours}: the bound does not go below that of the peak until {} such hours were measured (history that the model has \
         learned from shows nothing); set a smaller guarantee_rate, or wait",
        f64::from(supported_ppm) / 1e6,
        hours_that_show(hours, rate)
    )
}

/// Hours of demand in which so many promises follow one another that one of them may break.
fn hours_that_show(hours: HorizonHours, rate: GuaranteeRate) -> u64 {
    debug_assert!(hours.get() > 0, "a promise has hours");
    let promises = u64::from(GuaranteeRate::MILLION).div_ceil(u64::from(rate.target_eviction_ppm()).max(1));
    promises * u64::from(hours.get())
}
