"""Bodies and answers of the service, as its OpenAPI document describes them. Written by `generate.py`: do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "AffinityBody",
    "AggregationSourceBody",
    "AggregationTrial",
    "BoundExplanation",
    "BrokenPromise",
    "CalendarExplanation",
    "CalibrationExplanation",
    "CapacityExplanation",
    "CapacitySourceBody",
    "ChargesBody",
    "ConformalExplanation",
    "CostsBody",
    "CutCodeBody",
    "DemandAnswer",
    "DomainBody",
    "DriftExplanation",
    "ElasticBody",
    "EtaExplanation",
    "EtaMoveBody",
    "EventBody",
    "EventKindBody",
    "ExpertExplanation",
    "Explanation",
    "FieldError",
    "ForecastAnswer",
    "ForecastExplanation",
    "ForecastOriginBody",
    "GpuHoursBody",
    "GuaranteeRecord",
    "HpJobBody",
    "HpJobStateBody",
    "JobsExplanation",
    "JudgementBody",
    "KeptExplanation",
    "LimitRecord",
    "LiveExplanation",
    "MomentBody",
    "NodeBody",
    "NodeList",
    "NodeView",
    "NodeViews",
    "NumaNodeBody",
    "OrganizationBound",
    "OrganizationCorrection",
    "OrganizationDemand",
    "OrganizationDriftBody",
    "OrganizationForecast",
    "OutcomeBatch",
    "OutcomeBody",
    "OutcomeKindBody",
    "OutcomeReceipt",
    "OutcomeResult",
    "OutcomeResultBody",
    "OverrideBody",
    "OverrideKindBody",
    "PlaceBody",
    "PlacedByBody",
    "PolicyBody",
    "PoolForecastStep",
    "PoolGpuHoursBody",
    "PoolList",
    "PoolStateBody",
    "PoolStateReceipt",
    "PoolSummary",
    "PoolTasks",
    "PriceBody",
    "PriceList",
    "PriceQuestion",
    "ProbabilitySourceBody",
    "Problem",
    "PromiseBody",
    "PromiseCountsBody",
    "PromiseDay",
    "PromiseHours",
    "PromiseKept",
    "PromiseKindBody",
    "PromiseReport",
    "PromiseServed",
    "PromiseWorst",
    "PromotionBody",
    "QuotaAnswer",
    "QuotaHistory",
    "QuotaRecord",
    "ReasonBody",
    "RepeatsBody",
    "ReservationBody",
    "ReservationList",
    "ReservationRequest",
    "ReservationsBody",
    "ReservedWindowBody",
    "RunBody",
    "RunList",
    "ScoreBody",
    "ServedBounds",
    "ServedExtreme",
    "SettingsBody",
    "ShareList",
    "ShareStanding",
    "ShareTask",
    "SharesBody",
    "StageBody",
    "StandingBody",
    "StartAnswer",
    "StartBody",
    "StartCoverageBody",
    "StartIntervalBody",
    "StartQuestion",
    "StartSpanBody",
    "StartedByBody",
    "StatementAnswer",
    "StatementLine",
    "StatementPool",
    "StatementPreemption",
    "StatementSource",
    "StepBody",
    "StepTotalBody",
    "StrictnessBody",
    "SupplyExplanation",
    "TaskAnswer",
    "TaskBody",
    "TaskClassBody",
    "TaskCut",
    "TaskDetail",
    "TaskExplanation",
    "TaskList",
    "TaskRun",
    "TaskStatusBody",
    "TopologyBody",
    "UsageBatch",
    "UsageReceipt",
    "UsageRowBody",
    "VictimsBody",
    "WeekdayBody",
    "WhatIfAnswer",
    "WhatIfSide",
]

AggregationSourceBody = Literal["settings", "validation"]
"""The choice of an aggregation."""


CapacitySourceBody = Literal["reported_state", "nodes", "capacity_table"]
"""The source of a pool's capacity."""


CutCodeBody = Literal["evicted", "node_failed", "node_drained", "reserved"]
"""The reason for which a run was cut."""


DomainBody = Literal["numa", "socket", "nvlink-island"]
"""The part of a node in which the GPUs of a pod lie together."""


EventKindBody = Literal["started", "evicted", "shrunk", "grown", "node_lost", "quota_changed", "eta_moved"]
"""The kind of an event of a pool."""


ForecastOriginBody = Literal["model", "cold_start", "left"]
"""The origin of an organization's forecast."""


HpJobStateBody = Literal["running", "waiting"]
"""The state of a reported HP job."""


OutcomeKindBody = Literal["kept", "broken", "node_failure", "drain", "user_deleted"]
"""How a guarantee period ended."""


OutcomeResultBody = Literal["recorded", "repeated", "conflicting"]
"""Whether an outcome was new."""


OverrideKindBody = Literal["reserve", "release"]
"""The effect of an override."""


PlacedByBody = Literal["headroom", "external"]
"""The side that places the tasks of a pool."""


ProbabilitySourceBody = Literal["forecast", "history", "unknown"]
"""Source of the probability of a reserved window."""


PromiseKindBody = Literal["kept", "peak"]
"""The event whose probability is the guarantee rate."""


StageBody = Literal["fresh", "stale", "conservative"]
"""The age of a quota's numbers."""


StandingBody = Literal["too_few_hours", "inside", "below", "above"]
"""A share against its band."""


StrictnessBody = Literal["guaranteed", "best_effort"]
"""Whether an affinity is a condition."""


TaskClassBody = Literal["hp", "spot"]
"""The class of a task."""


TaskStatusBody = Literal["waiting", "running", "finished", "deleted"]
"""The status of a task."""


WeekdayBody = Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
"""A day of the week, in the time zone of the cluster."""


@dataclass(frozen=True, kw_only=True)
class AffinityBody:
    """The affinity of the GPUs of a pod."""

    domain: DomainBody
    """The part of a node."""

    strictness: StrictnessBody | None = None
    """Whether the task waits for it; `best_effort` if it is not given."""


@dataclass(frozen=True, kw_only=True)
class AggregationTrial:
    """One aggregation on the validation part."""

    aggregation: str
    """The name of the aggregation."""

    coverage: float
    """Share of hours whose demand stayed at or below the bound."""

    coverage_interval: list[float]
    """90 % interval over days."""

    over_reserved_gpus: float
    """Mean GPUs of the bound above demand."""

    pinball_gpus: float
    """Pinball loss at the guarantee rate."""


@dataclass(frozen=True, kw_only=True)
class BoundExplanation:
    """B_H."""

    aggregation: str
    """The rule by which the forecasts of organizations become a bound."""

    aggregation_source: AggregationSourceBody
    """Whether the aggregation was chosen on validation or set for the pool."""

    demand_bound_gpus: float
    """Rounded up to a thousandth."""

    guarantee_rate: float
    """p, the guarantee rate."""

    organizations: list[OrganizationBound]
    """The bound of each organization under `sum-of-bounds`."""

    steps: int
    """Forecast steps that the bound covers: `hours`, and those of late usage."""

    totals: list[StepTotalBody]
    """The pool's total at each step, as a Gaussian."""

    trials: list[AggregationTrial]
    """The score of each aggregation on the validation part of the run."""

    conformal: ConformalExplanation | None = None
    """The statistics of the pool's measured peaks, for `conformal` and `mixture`."""

    deciding_step: int | None = None
    """The step (from 1) that decides; null for `sum-of-bounds`."""

    experts: list[ExpertExplanation] | None = None
    """The experts whose bounds were mixed, for `mixture`: B_H is the sum of weight × bound. Empty for other
    aggregations, and in explanations stored before there was a mixture."""

    kept: KeptExplanation | None = None
    """The correction of the peak's bound by which promises are kept as often as p demands; under `kept`, after a
    day of observation."""

    live: LiveExplanation | None = None
    """The mix of the forecast's bound with a live one, which follows HP demand from moment to moment; for pools
    that Headroom places."""

    mean_correlation: float | None = None
    """The mean correlation between organizations, for `pooled`."""

    multiplier: float | None = None
    """Deviations added to the mean, or under `conformal` to the centre; null for `sum-of-bounds` and `mixture`."""

    promise: PromiseKindBody | None = None
    """The event whose probability is p. Null in explanations stored before there was a choice."""

    raised_from_gpus: float | None = None
    """The bound before it was raised to that of fewer hours; null where it was not."""

    returns_gpus: float | None = None
    """The demand that the pool usually returns to where a day off ends within the hours, or ended in the half
    day before; the bound is no less. Null where none does, and in explanations stored before it was known."""

    step_correlation: float | None = None
    """The mean correlation between steps, for `pooled`."""


@dataclass(frozen=True, kw_only=True)
class BrokenPromise:
    """A broken promise."""

    ended_at: str
    """When it was broken, RFC 3339."""

    event_id: str
    """The id of the event."""

    hours: int
    """Its guarantee hours."""

    why: str
    """The reason, as a sentence."""

    node: str | None = None
    """The node; null where it was not reported."""

    task: str | None = None
    """The task; null where it was not reported."""


@dataclass(frozen=True, kw_only=True)
class CalendarExplanation:
    """The calendar of days off."""

    covered: bool
    """Whether the hours of the forecast lie between the two dates. Beyond them, only Saturdays and Sundays count
    as days off."""

    day_off: bool
    """Whether the first hour of the forecast is in a day off."""

    name: str
    """`weekdays`, `CN`, a user's own, or both, as in `CN+acme`."""

    time_zone: str
    """The time zone of the cluster."""

    covers_from: str | None = None
    """The first local date whose days off are known; null where all are."""

    covers_until: str | None = None
    """The last local date whose days off are known; null where all are."""


@dataclass(frozen=True, kw_only=True)
class CalibrationExplanation:
    """Corrections learned from earlier forecasts of the run, once their hours were over."""

    correcting: bool
    """Whether forecasts of organizations are corrected, as validation decided. Pools are tracked either way."""

    organizations: list[OrganizationCorrection]
    """The organizations whose forecasts were corrected."""

    newest_issue_time: str | None = None
    """The last issue time that a correction was learned from, in training or since."""


@dataclass(frozen=True, kw_only=True)
class CapacityExplanation:
    """C and its source."""

    capacity_gpus: float
    """C, the capacity."""

    source: CapacitySourceBody
    """The source of the capacity."""


@dataclass(frozen=True, kw_only=True)
class ChargesBody:
    """The charges of a row, in units of the statement's currency."""

    at_will: float
    """Spot at will."""

    credit: float
    """Credit for what broken promises still owed; part of `total` with a minus."""

    guaranteed: float
    """Spot inside its guarantee."""

    hp: float
    """HP tasks."""

    total: float
    """`hp` + `guaranteed` + `at_will` − `credit`."""


@dataclass(frozen=True, kw_only=True)
class ConformalExplanation:
    """Statistics of the residuals of a pool's measured peaks over the last week: B_H is the centre and
    `multiplier` deviations. The multiplier is the weighted mean of the two order statistics; with less than a
    day of residuals it leans on `pooled`."""

    centre_gpus: float
    """(1 − share) × sum + share × total."""

    coverage: float
    """The share of them that the weighted mean of the two covers."""

    deviation_gpus: float
    """One deviation, in GPUs."""

    own_order_statistic: float
    """⌈(n+1)p⌉-th smallest of the pool's own residuals, in deviations."""

    own_weight: float
    """Its weight; the shared one has the rest."""

    residuals: int
    """Own residuals in the window."""

    shared_order_statistic: float
    """The same of all pools of the cluster."""

    sum_gpus: float
    """Sum over organizations of their largest 0.9 quantile."""

    total_gpus: float
    """The largest 0.9 quantile of their total, were they independent Gaussians."""

    total_share: float
    """The share of the total in the centre: the one with the least loss of its bounds over the last week."""


@dataclass(frozen=True, kw_only=True)
class CostsBody:
    """The costs of a pool, in units of the statement's currency."""

    idle: float
    """Of owning those that no task held."""

    lost: float
    """Of the work that evictions and lost nodes cost."""

    owned: float
    """Of owning its GPUs."""


@dataclass(frozen=True, kw_only=True)
class DemandAnswer:
    """`GET /v1/demand`."""

    cluster: str
    """The cluster."""

    from_: str = field(metadata={"json": "from"})
    """The first hour."""

    gpu_model: str
    """The GPU model."""

    organizations: list[OrganizationDemand]
    """The demand of each organization."""

    pool: list[float | None]
    """The pool's own hourly peak where it is measured, else the sum over its organizations."""


@dataclass(frozen=True, kw_only=True)
class DriftExplanation:
    """Forecasts of a pool against its measured demand. An issue hour is scored once, when its hours are over and
    measured. Hours without a measurement, or with one that came more than two hours after that of the rest,
    are counted and not scored."""

    bound: JudgementBody
    """The coverage of the pool's bound, beside its band."""

    bound_issue_hours: int
    """Issue hours whose bound was compared with the pool's peak."""

    bound_unmeasured: int
    """Issue hours whose peak was not measured whole."""

    coverage: JudgementBody
    """The coverage of the 0.9 quantile, beside its band."""

    drifts: bool
    """Whether one of the two shares has left its band."""

    first_issue_time: str
    """The first issue hour that was scored."""

    issue_hours: int
    """Issue hours, of at most 168, that were scored. One at which the service did not forecast is missing."""

    last_issue_time: str
    """The last issue hour that was scored."""

    organizations: list[OrganizationDriftBody]
    """The forecasts of each organization."""

    scored_hours: int
    """Hours of all organizations' forecasts: one for each issue hour, step and organization."""

    unmeasured_hours: int
    """Hours of forecasts without a measurement."""

    bound_coverage: float | None = None
    """Share of bounds that held."""

    coverage_q90: float | None = None
    """Share of hours at or below the 0.9 quantile."""

    last_value_mae_gpus: float | None = None
    """That of the last value that was known at each issue hour, on the same hours."""

    mae_gpus: float | None = None
    """Mean absolute error of the median."""

    outside_since: str | None = None
    """When a share left its band, as far as the service has observed since its start."""


@dataclass(frozen=True, kw_only=True)
class ElasticBody:
    """The range in which the pods of a task may change while it runs."""

    min_pods: int
    """The fewest pods on which it runs; a guarantee holds for these."""

    max_pods: int | None = None
    """The most pods that it uses; without it, twice the pods that it asks for."""

    speeds: list[float] | None = None
    """Its speeds on 1, 2, 3 … pods, as multiples of the speed on one, such as [1, 1.9, 2.6]; without them,
    linear. A task is lent no more pods than it has speeds."""


@dataclass(frozen=True, kw_only=True)
class EtaExplanation:
    """η and its last moves."""

    eta: float
    """η."""

    last_decision: ReasonBody
    """The reason for which it stayed or moved when the quota was computed."""

    moves: list[EtaMoveBody]
    """The last five moves, newest first."""


@dataclass(frozen=True, kw_only=True)
class EtaMoveBody:
    """A move of η."""

    at: str
    """When η moved, RFC 3339."""

    broken: int
    """Broken guarantees that the move counted."""

    from_: float = field(metadata={"json": "from"})
    """η before."""

    kept: int
    """Kept guarantees that the move counted."""

    reason: str
    """The code of the reason."""

    to: float
    """η after."""


@dataclass(frozen=True, kw_only=True)
class EventBody:
    """An event of a pool, as `GET /v1/events` and the webhook send it."""

    at: str
    """When, RFC 3339."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    id: str
    """Unique in its pool and rising."""

    kind: EventKindBody
    """The kind of event."""

    by: str | None = None
    """The task for which it is evicted or shrinks, or the lost node."""

    deadline: str | None = None
    """The end of the grace period of an evicted or shrinking task; the time at which a started or grown task has
    its GPUs."""

    limits: list[LimitRecord] | None = None
    """The new limits of spot."""

    nodes: list[str] | None = None
    """Its nodes, before or after."""

    places: list[PlaceBody] | None = None
    """The pods that an elastic task has to release, or may start."""

    pods: int | None = None
    """The pods of an elastic task from then on."""

    start: StartSpanBody | None = None
    """The expected start of a waiting task."""

    task: str | None = None
    """The task that it concerns."""


@dataclass(frozen=True, kw_only=True)
class ExpertExplanation:
    """One expert on a pool's peak. Its weight follows the losses of the bounds that it stated before."""

    expert: str
    """The name of the expert."""

    weight: float
    """Its weight; the weights sum to 1."""

    bound_gpus: float | None = None
    """Its bound; null while it knows too little."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A quota and everything that went into it, in the order in which it was computed."""

    bound: BoundExplanation
    """B_H."""

    capacity: CapacityExplanation
    """C."""

    eta: EtaExplanation
    """η."""

    forecast: ForecastExplanation
    """The forecasts."""

    quota: QuotaAnswer
    """The quota."""

    steps: list[str]
    """The steps as sentences with numbers."""

    supply: SupplyExplanation
    """S0 and S_a(H)."""

    what_would_change: str
    """The input that would change the quota first."""

    calendar: CalendarExplanation | None = None
    """Null in explanations that were stored before there were calendars."""

    drift: DriftExplanation | None = None
    """The accuracy of the forecasts of the last seven days, as of now; null before the first of them was scored,
    and null in stored explanations."""

    overrides: list[OverrideBody] | None = None
    """The overrides that the bound follows."""

    placed_by: PlacedByBody | None = None
    """The side that places the tasks of the pool; null while it is undecided, and in explanations stored before
    there were sides."""

    starts: list[StartCoverageBody] | None = None
    """How forecasts of starts fared, by class, as of now; empty while few starts were forecast, where an
    external scheduler places the pool, and in stored explanations."""


@dataclass(frozen=True, kw_only=True)
class FieldError:
    """A refused field."""

    detail: str
    """The fault, and what was expected."""

    pointer: str
    """RFC 6901."""


@dataclass(frozen=True, kw_only=True)
class ForecastAnswer:
    """`GET /v1/forecast`."""

    cluster: str
    """The cluster."""

    computed_at: str
    """When it was computed, RFC 3339."""

    gpu_model: str
    """The GPU model."""

    issue_time: str
    """The first hour that the model has not seen."""

    model: str
    """The name of the model."""

    organizations: list[OrganizationForecast]
    """The forecast of each organization."""

    run_id: str | None = None
    """The training run; null without one."""


@dataclass(frozen=True, kw_only=True)
class ForecastExplanation:
    """The forecasts of the pool's organizations."""

    hours_late: int
    """Hours between the issue time and the hour in which the quota was computed: their usage has not arrived
    yet."""

    issue_time: str
    """The first instant that the model has not seen."""

    model: str
    """The name of the model."""

    organizations: list[OrganizationForecast]
    """As they were issued. Empty in stored explanations."""

    calibration: CalibrationExplanation | None = None
    """Their earlier corrections; null in stored explanations."""

    not_reported: list[str] | None = None
    """Organizations that have not reported the hour before the issue time, and did report one of the two days
    before: their last known demand stands for it. Empty where Headroom places the tasks, and in stored
    explanations."""

    organization_count: int | None = None
    """Organizations whose demand was forecast; 0 in explanations stored before they were counted."""

    run_id: str | None = None
    """The training run whose model forecast."""


@dataclass(frozen=True, kw_only=True)
class GpuHoursBody:
    """GPU-hours of an organization, or of all."""

    at_will: float
    """Spot tasks without a guarantee or after it, and pods on lent GPUs."""

    broken: float
    """Promised by guarantees that HP broke."""

    guaranteed: float
    """Spot tasks inside their guarantee."""

    handover: float
    """GPUs that a task has been given and that victims still leave."""

    hp: float
    """HP tasks."""

    kept: float
    """Promised by guarantees that were kept."""

    lost_to_evictions: float
    """Work of spot tasks since their last checkpoint, lost to evictions."""

    lost_to_nodes: float
    """Work since the last checkpoint, lost with nodes."""

    owed: float
    """The part of `broken` that was still owed."""

    sold: float
    """Promised by the guarantees that ended: `kept` + `broken` + `voided`."""

    voided: float
    """Promised by guarantees that a lost node, a drain or the user ended."""


@dataclass(frozen=True, kw_only=True)
class GuaranteeRecord:
    """[`Guarantee`]."""

    hours: int
    """Guarantee hours."""

    until_unix_s: int
    """When the guarantee ends."""


@dataclass(frozen=True, kw_only=True)
class HpJobBody:
    """An HP job that runs or waits, in `PUT /v1/pools/{id}/state`."""

    gpus: float
    """GPUs, of all its pods."""

    id: str
    """The id of the job, the same in every report."""

    organization: str
    """The organization."""

    since: str
    """The start of its run, or while it waits the time of its submission, RFC 3339. A time after `as_of` counts
    as `as_of`."""

    state: HpJobStateBody
    """Whether it runs or waits."""


@dataclass(frozen=True, kw_only=True)
class JobsExplanation:
    """The bound that is drawn from the HP jobs that run, wait and came before."""

    ended: int
    """Jobs whose ends it has watched."""

    listed: int
    """Jobs of the list that its run was trained with."""

    running: int
    """Jobs that run."""

    share: float
    """Its share, by its losses of the last days beside those of the other bounds."""

    waiting: int
    """Jobs that wait."""

    bound_gpus: float | None = None
    """The p-quantile of the peaks of the drawn paths; null until enough arrivals were seen."""

    raised_from_gpus: float | None = None
    """The bound mixed of it and the others, where that over fewer hours is larger and holds here too; null where
    it is not, and in explanations stored by earlier versions."""


@dataclass(frozen=True, kw_only=True)
class JudgementBody:
    """A share that the promoted run states, and the band in which it should be."""

    detail: str
    """The judgement as a sentence."""

    issue_hours: int
    """Issue hours of this run."""

    least_issue_hours: int
    """Issue hours that a judgement needs."""

    standing: StandingBody
    """The share against its band."""

    band: list[float] | None = None
    """Lowest and highest share; none while there are too few hours."""

    promised: float | None = None
    """The share that the run promised; null where none is known."""

    share: float | None = None
    """The measured share; null without scored hours."""


@dataclass(frozen=True, kw_only=True)
class KeptExplanation:
    """Up to λ = 1, B_H = needed + λ · (bound of the peak − needed), where needed is the HP demand now; from
    there on it goes from the bound of the peak to all GPUs of the pool, which it reaches at 3. λ rises where
    promises break more often than they may, and falls where they break less often."""

    lambda_: float = field(metadata={"json": "lambda"})
    """λ."""

    peak_bound_gpus: float
    """The bound that HP demand stays below with probability p."""


@dataclass(frozen=True, kw_only=True)
class LimitRecord:
    """[`Limit`]."""

    hours: int
    """Guarantee hours."""

    quota_milli: int
    """The quota, in thousandths of a GPU."""


@dataclass(frozen=True, kw_only=True)
class LiveExplanation:
    """B_H between two forecasts: `share` of the live bound and the rest of the forecast's; where HP jobs are
    known, `jobs.share` of their bound and the rest of that; no less than what HP needs now."""

    forecast_bound_gpus: float
    """The bound of the forecast."""

    hp_demand_gpus: float
    """HP GPUs, running and waiting, when the quota was computed."""

    share: float
    """The share with the least loss over the last days."""

    jobs: JobsExplanation | None = None
    """The bound of the HP jobs; null where they are not known, and in explanations stored before they were."""

    live_bound_gpus: float | None = None
    """Demand now, and its rise at the guarantee rate; null in the first hour."""

    raised_from_gpus: float | None = None
    """The bound mixed of forecast and live bound, where that over fewer hours is larger and holds here too; null
    where it is not, and in explanations stored by earlier versions."""


@dataclass(frozen=True, kw_only=True)
class MomentBody:
    """A time that is forecast."""

    at: str
    """RFC 3339."""

    wait_s: int
    """Seconds from the forecast on; 0 for a time before it."""


@dataclass(frozen=True, kw_only=True)
class NodeBody:
    """A node."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    gpus: int
    """Its GPUs."""

    cpu_milli: int | None = None
    """Thousandths of a virtual CPU."""

    drain: bool | None = None
    """Whether it takes no new pods; running pods stay."""

    id: str | None = None
    """Its id, in answers; in a request the path names the node."""

    memory_mib: int | None = None
    """Memory, in MiB."""

    topology: TopologyBody | None = None
    """The topology of its GPUs and cores; absent where it is unknown."""


@dataclass(frozen=True, kw_only=True)
class NodeList:
    """`GET /v1/nodes`."""

    nodes: list[NodeBody]
    """The nodes, by name."""


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """A node with its allocated GPUs, now and hour by hour."""

    drains: bool
    """Whether it takes no new pods."""

    evictions_24h: int
    """Spot tasks that were evicted from it in the last 24 h, as far as the pool still counts them."""

    gpus: int
    """The number of GPUs."""

    hp_gpus: float
    """GPUs of HP tasks."""

    idle_gpus: float
    """GPUs without a task."""

    node: str
    """The id of the node."""

    peak_gpus: list[float | None]
    """The most allocated GPUs of each hour, at the renewals of the quotas; null where they are unknown."""

    spot_gpus: float
    """Lent GPUs included."""


@dataclass(frozen=True, kw_only=True)
class NodeViews:
    """`GET /v1/pools/{id}/nodes` (GFS figure 8)."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    hours: list[str]
    """The hours of `peak_gpus`, RFC 3339."""

    nodes: list[NodeView]
    """The nodes, by name."""


@dataclass(frozen=True, kw_only=True)
class NumaNodeBody:
    """A NUMA node."""

    gpus: list[int]
    """Numbers of GPUs, from 0."""

    numa_node: int
    """Its number."""

    socket: int
    """The number of its socket."""

    cores: str | None = None
    """Logical CPUs as the kernel lists them, such as 0-31,64-95."""


@dataclass(frozen=True, kw_only=True)
class OrganizationBound:
    """An organization's own bound."""

    bound_gpus: float
    """The bound."""

    mean_gpus: float
    """The mean."""

    organization: str
    """The organization."""

    stddev_gpus: float
    """The standard deviation."""

    step: int
    """The step (from 1) that decides."""


@dataclass(frozen=True, kw_only=True)
class OrganizationCorrection:
    """The correction of an organization's forecast, on average over its steps."""

    fallen_gpus: float
    """How far demand had fallen below the peak of the hour before by the end of it, which mean and median
    follow; 0 where the end is not known."""

    mean_gpus: float
    """The mean."""

    organization: str
    """The organization."""

    q50_gpus: float
    """The median."""

    q90_gpus: float
    """The 0.9 quantile."""

    q95_gpus: float
    """The 0.95 quantile."""

    residuals: int
    """Hours that it was learned from."""


@dataclass(frozen=True, kw_only=True)
class OrganizationDemand:
    """The measured demand of an organization, hour by hour."""

    demand_gpus: list[float | None]
    """One value for each hour; null without a measurement."""

    organization: str
    """The organization."""


@dataclass(frozen=True, kw_only=True)
class OrganizationDriftBody:
    """The forecasts of one organization."""

    organization: str
    """The organization."""

    scored_hours: int
    """Hours that were scored."""

    unmeasured_hours: int
    """Hours without a measurement."""

    coverage_q90: float | None = None
    """Share of hours at or below the 0.9 quantile."""

    last_value_mae_gpus: float | None = None
    """Mean absolute error of the last known value, on the same hours."""

    mae_gpus: float | None = None
    """Mean absolute error of the median."""


@dataclass(frozen=True, kw_only=True)
class OrganizationForecast:
    """An organization's demand over the next hours."""

    organization: str
    """The organization."""

    origin: ForecastOriginBody
    """The origin of the forecast."""

    steps: list[StepBody]
    """One distribution for each hour ahead."""


@dataclass(frozen=True, kw_only=True)
class OutcomeBatch:
    """`POST /v1/outcomes`."""

    outcomes: list[OutcomeBody]
    """The outcomes."""


@dataclass(frozen=True, kw_only=True)
class OutcomeBody:
    """The end of one guarantee period of a spot run."""

    cluster: str
    """The cluster."""

    ended_at: str
    """When the period ended, RFC 3339."""

    event_id: str
    """The reporter's own id; an event counts once, for any number of reports."""

    gpu_model: str
    """The GPU model."""

    guarantee_hours: int
    """H of the guarantee."""

    kind: OutcomeKindBody
    """How it ended; only `kept` and `broken` move eta."""

    began_at: str | None = None
    """When the guarantee was given. Without it a period counts as long as its guarantee: a task that ended early
    by itself then counts as kept, and the kept rate looks better than it is."""

    gpus: float | None = None
    """GPUs that were promised, over all pods; without it, one."""

    node: str | None = None
    """The node, where it is known."""

    task: str | None = None
    """The task, where it is known."""


@dataclass(frozen=True, kw_only=True)
class OutcomeReceipt:
    """One result for each event of a batch, in its order."""

    outcomes: list[OutcomeResult]
    """One result for each event."""


@dataclass(frozen=True, kw_only=True)
class OutcomeResult:
    """The result for one event."""

    event_id: str
    """The id of the event."""

    result: OutcomeResultBody
    """Whether it was new."""


@dataclass(frozen=True, kw_only=True)
class OverrideBody:
    """A stored override."""

    by: str
    """The name of a token, or another actor."""

    cluster: str
    """The cluster."""

    created_at: str
    """When it was created, RFC 3339."""

    from_: str = field(metadata={"json": "from"})
    """Its begin, RFC 3339."""

    gpu_model: str
    """The GPU model."""

    gpus: float
    """GPUs more or fewer."""

    id: int
    """Its number."""

    in_force: bool
    """Whether now lies between `from` and `to`."""

    kind: OverrideKindBody
    """Whether it reserves or releases."""

    reason: str
    """The reason, in words."""

    to: str
    """Its end, RFC 3339."""

    withdrawn_at: str | None = None
    """When it was withdrawn; null while it is not."""

    withdrawn_by: str | None = None
    """The actor who withdrew it."""


@dataclass(frozen=True, kw_only=True)
class PlaceBody:
    """The GPUs of one running pod, and their neighbourhood where the node has a topology."""

    gpus: list[int]
    """Numbers of GPUs, from 0."""

    node: str
    """The id of the node."""

    aligned: bool | None = None
    """Whether the GPUs meet the affinity of the task, as far as the node's hardware allows; absent without an
    affinity or a topology."""

    cores: str | None = None
    """The logical CPUs beside its GPUs: those of a NUMA node are shared out evenly among its GPUs."""

    numa_nodes: list[int] | None = None
    """The NUMA nodes of its GPUs."""

    share_milli: int | None = None
    """Thousandths of the only one; absent where they are whole."""

    sockets: list[int] | None = None
    """The sockets of its GPUs."""


@dataclass(frozen=True, kw_only=True)
class PolicyBody:
    """A policy by its parts. An absent part is that of the policy `like`."""

    name: str
    """Its name in answers and tables."""

    admission: str | None = None
    """The condition on which a spot task starts: `quota`, or `idle` GPUs alone."""

    blocking: str | None = None
    """The tasks that wait behind one that does not fit: none (`nobody`), those of its class (`class`) or all
    (`everybody`)."""

    like: str | None = None
    """The policy that absent parts are taken from; without it, `gfs`."""

    limits_follow_demand: bool | None = None
    """Whether HP demand that rises between two computations of a quota lowers it."""

    order: str | None = None
    """The order of the queue: `small-spot-first`, `size` or `arrival`; HP before spot in each."""

    reservations: ReservationsBody | None = None
    """Reservations for tasks that would starve otherwise; for blocking by `nobody`."""

    score: ScoreBody | None = None
    """The choice of nodes and GPUs."""

    shares: SharesBody | None = None
    """Fair shares of spot among organizations; for blocking by `nobody`. Without it, only `order` counts."""

    timing: str | None = None
    """The time of an eviction: `at-once`, or `lazer`, where HP that would evict waits for a learned moment."""

    topology: bool | None = None
    """Whether score and victims follow the topology of a node: sockets, NUMA nodes, NVLink islands."""

    victims: VictimsBody | None = None
    """The choice of victims."""


@dataclass(frozen=True, kw_only=True)
class PoolForecastStep:
    """HP demand of a pool in one hour, in GPUs."""

    mean_gpus: float
    """The mean: the sum of those of the organizations."""

    q90_gpus: float
    """The 0.9 quantile of a Gaussian of this deviation, as if organizations were independent: demand may be
    above it in more than a tenth of the hours. B_H is calibrated. It rests on the mean before that was
    lowered where demand fell within the last hour."""

    stddev_gpus: float
    """The standard deviation."""

    step: int
    """From 1."""

    target_time: str
    """The start of the hour that is forecast."""


@dataclass(frozen=True, kw_only=True)
class PoolGpuHoursBody:
    """GPU-hours of a pool that no task held. What tasks held + idle + drained is the capacity."""

    capacity: float
    """GPUs of all nodes."""

    drained: float
    """Idle on nodes that take no pods."""

    idle_offered: float
    """Idle, and within the quota of the shortest guarantee."""

    idle_reserved: float
    """Idle beyond the quota: kept for HP."""

    over_reserved: float
    """Kept for HP by the quota of the shortest guarantee, beyond HP demand at that moment; spot at will may have
    run on it."""


@dataclass(frozen=True, kw_only=True)
class PoolList:
    """`GET /v1/pools`."""

    pools: list[PoolSummary]
    """The pools, by id."""


@dataclass(frozen=True, kw_only=True)
class PoolStateBody:
    """`PUT /v1/pools/{id}/state`: the report of an external scheduler."""

    as_of: str
    """When the scheduler saw it, RFC 3339."""

    capacity_gpus: float
    """C, the capacity."""

    idle_gpus: float
    """S0."""

    hp_jobs: list[HpJobBody] | None = None
    """Every HP job that runs or waits, at most 10,000: bounds then follow them from moment to moment. Without
    the field they follow the hours of usage alone; an empty list says that there is no HP demand."""

    longest_quota_wait_s: int | None = None
    """l: the longest wait, in seconds, of a spot task that only the quota refuses."""

    spot_gpus_by_guarantee_hours: dict[str, float] | None = None
    """GPUs held by spot tasks inside their guarantee, by the hours that they were promised: `{"1": 12, "4": 8}`."""


@dataclass(frozen=True, kw_only=True)
class PoolStateReceipt:
    """The answer to a reported state."""

    taken: bool
    """Whether it is the newest report of the pool."""


@dataclass(frozen=True, kw_only=True)
class PoolSummary:
    """A summary of a pool."""

    available_gpus_by_hours: dict[str, float]
    """GPUs that may still be admitted."""

    cluster: str
    """The cluster."""

    demand_bound_gpus_by_hours: dict[str, float]
    """B_H."""

    eta: float
    """η; 1 before a first quota."""

    forecast: list[PoolForecastStep]
    """The pool's HP demand by hours ahead, as the forecasts of its organizations add up."""

    gpu_model: str
    """The GPU model."""

    id: str
    """`CLUSTER:GPU_MODEL`."""

    offered_hours: list[int]
    """H, rising."""

    organizations: int
    """Organizations with a forecast."""

    outcomes_24h: dict[str, int]
    """Guarantees that ended in the last 24 hours, by kind."""

    overrides: int
    """Valid overrides."""

    quota_gpus_by_hours: dict[str, float]
    """The quota for each offered number of hours that has one, as `/quota` answers it: at the stage
    `conservative` no more than spot tasks hold."""

    spot_gpus_by_hours: dict[str, float]
    """S_a(H)."""

    capacity_gpus: float | None = None
    """C; null where it is not known."""

    computed_at: str | None = None
    """When its quotas were computed; null without one."""

    computed_quota_gpus_by_hours: dict[str, float] | None = None
    """The same as last computed, at any age since `computed_at`: for a scheduler that ages them by what it holds
    itself. Admit nothing by these alone."""

    guarantee_rate: float | None = None
    """p."""

    hp_demand_gpus: float | None = None
    """HP GPUs, running and waiting, now; null in a pool of an external scheduler."""

    idle_gpus: float | None = None
    """S0."""

    latest_demand_gpus: float | None = None
    """The HP demand of the last measured hour."""

    no_quota: str | None = None
    """The reason for which there is no quota; null with one."""

    placed_by: PlacedByBody | None = None
    """The side that places its tasks; null while it is undecided."""

    stage: StageBody | None = None
    """The stage of its quotas; null without one."""

    tasks: PoolTasks | None = None
    """Its tasks; null in a pool of an external scheduler."""

    valid_until: str | None = None
    """When its quotas become stale; null without one."""


@dataclass(frozen=True, kw_only=True)
class PoolTasks:
    """Tasks of a pool, of both classes, as of its last renewal. `GET /v1/pools/{id}/snapshot` has those of this
    moment."""

    running: int
    """Tasks that ran at the last renewal."""

    waiting: int
    """Tasks that waited at the last renewal."""


@dataclass(frozen=True, kw_only=True)
class PriceBody:
    """The price of a class and a guarantee in waiting."""

    class_: TaskClassBody = field(metadata={"json": "class"})
    """The class of the task."""

    doubts: list[ReasonBody]
    """Why the price may be off."""

    start: StartBody
    """When it would start."""

    starts_now: bool
    """Whether it would start at once."""

    text: str
    """The price in short, such as `spot, 4 h: in 35 min`."""

    ends: MomentBody | None = None
    """When it would have ended with the asked probability, evictions included; null without `runs_s`, and beyond
    the horizon."""

    ends_by_probability: float | None = None
    """The probability that it has ended by `ends_by`; null without one."""

    ends_in_time: bool | None = None
    """Whether that is at least what was asked for; null without `ends_by`."""

    guarantee_hours: int | None = None
    """Guarantee hours; null for HP, which is never evicted, and for spot at will."""

    submit_by: str | None = None
    """The last time of submission, of those that were tried, at which it still ends in time; null where it does
    not."""


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """The answer to `POST /v1/tasks/prices`."""

    as_of: str
    """When it was forecast, RFC 3339."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    guarantee_rate: float
    """p, the probability with which a guarantee is kept."""

    prices: list[PriceBody]
    """Spot at will, spot by rising guarantee, and HP."""

    cheapest_in_time: int | None = None
    """The place in `prices` of the one with the fewest guarantee hours that ends in time, spot before HP; null
    without one, and without `ends_by`."""


@dataclass(frozen=True, kw_only=True)
class PriceQuestion:
    """`POST /v1/tasks/prices`: a task whose class and guarantee are open."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    gpus_per_pod: float
    """A share of one GPU such as 0.25, or whole ones."""

    organization: str
    """The organization."""

    cpu_milli: int | None = None
    """Thousandths of a virtual CPU, of each pod; 0 for no requirement."""

    ends_by: str | None = None
    """When it is to have ended, RFC 3339; needs `runs_s`."""

    memory_mib: int | None = None
    """Memory of each pod, in MiB."""

    pods: int | None = None
    """The number of pods, all alike."""

    probability: float | None = None
    """The probability with which it is to have ended by then; 0.9 if not given."""

    runs_s: int | None = None
    """How long the task runs, in seconds: what its end follows from."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Problem details (RFC 9457)."""

    code: str
    """The last part of `type`, for programs."""

    detail: str
    """The fault of this request, and what to do."""

    status: int
    """The HTTP status."""

    title: str
    """The kind of problem, for people."""

    type: str
    """A relative reference that names the kind of problem, such as `/problems/unknown-pool`."""

    errors: list[FieldError] | None = None
    """The refused fields of a body."""

    known: list[str] | None = None
    """The known names, in answer to an unknown one."""

    retry_after_s: int | None = None
    """Seconds after which the client may retry."""


@dataclass(frozen=True, kw_only=True)
class PromiseBody:
    """Promises of a pool beside their limit."""

    hours: int
    """Guarantee hours."""

    promised_gpus: float
    """Promised GPUs."""

    quota_gpus: float
    """f · η: GPUs that may be promised for so long."""


@dataclass(frozen=True, kw_only=True)
class PromiseCountsBody:
    """Guarantees that ended."""

    broken: int
    """Broken by HP."""

    kept: int
    """Kept."""

    voided: int
    """Ended by a lost node, a drain or the user."""


@dataclass(frozen=True, kw_only=True)
class PromiseDay:
    """Promises that ended in one day of UTC."""

    broken: int
    """Guarantees that HP demand broke."""

    day: str
    """The day, YYYY-MM-DD."""

    kept: int
    """Guarantees that were kept."""

    other: int
    """Guarantees that node failures, drains or their users ended: neither kept nor broken."""


@dataclass(frozen=True, kw_only=True)
class PromiseHours:
    """Promises of so many hours."""

    broken: int
    """Guarantees that HP demand broke."""

    hours: int
    """H, the guarantee hours."""

    kept: int
    """Guarantees that were kept."""

    e_value: float | None = None
    """Evidence of the last 28 days that the promise fails: it fails at 20 or more, which chance alone reaches in
    at most one of twenty months. About 0.5 is no evidence. Null where no period is old enough."""

    e_value_since: str | None = None
    """The estimated begin of the failure; null without evidence against the promise."""

    kept_rate: float | None = None
    """K_H: the share of promised GPUs that HP left where they were for so many hours, as a Kaplan–Meier
    survival: a task that ends early is censored. Null where no period has ended."""

    kept_rate_deviation: float | None = None
    """One standard error of it, with one day left out after the other; null where all began on one day."""

    kept_rate_unweighted: float | None = None
    """The same with each period counted once, for any number of GPUs."""

    last_7_days: PromiseKept | None = None
    """The same for periods that ended in the last seven days, for any `days` in the query."""

    served: PromiseServed | None = None
    """The coverage of the bounds that quotas were computed from, sold or not; null where another service
    computes them."""

    sold_gpus: float | None = None
    """GPUs of spot tasks inside a guarantee of at least so many hours, now; null where it is unknown."""

    worst_day: PromiseWorst | None = None
    """The 24 h in which the promise was kept least, by when promises were given; null where no day has 20 of
    them."""

    worst_week: PromiseWorst | None = None
    """The seven days of UTC in which it was kept least; null where none have 100 promises."""


@dataclass(frozen=True, kw_only=True)
class PromiseKept:
    """Kept rate of some periods."""

    broken: int
    """Those that HP demand broke."""

    kept_rate: float
    """K_H."""

    periods: int
    """Guarantee periods that were counted."""

    kept_rate_deviation: float | None = None
    """One standard error; null where all began on one day."""


@dataclass(frozen=True, kw_only=True)
class PromiseReport:
    """`GET /v1/promises`: promises sold, kept and broken, with reasons."""

    broken: int
    """Guarantees that HP demand broke."""

    broken_ones: list[BrokenPromise]
    """The newest 50."""

    by_hours: list[PromiseHours]
    """The promises of each number of guarantee hours."""

    by_kind: dict[str, int]
    """`kept`, `broken`, `node_failure`, `drain`, `user_deleted`."""

    cluster: str
    """The cluster."""

    days: list[PromiseDay]
    """The days, rising, with those on which no promise ended."""

    from_: str = field(metadata={"json": "from"})
    """The begin of the report, RFC 3339."""

    gpu_model: str
    """The GPU model."""

    guarantee_rate: float
    """p, as it is set now."""

    kept: int
    """Guarantees that were kept."""

    sold: int
    """Guarantee periods that ended in the time, for any reason, and open ones."""

    target_eviction_rate: float
    """q = 1 − p."""

    to: str
    """Its end, RFC 3339."""

    guarantee_eviction_rate: float | None = None
    """broken / (kept + broken); null where there was none."""

    open: int | None = None
    """Periods that run now; null in a pool of an external scheduler."""


@dataclass(frozen=True, kw_only=True)
class PromiseServed:
    """The bounds that were served, against the measured demand."""

    last_24_hours: ServedBounds
    """The last 24 hours."""

    last_28_days: ServedBounds
    """The last 28 days."""

    last_7_days: ServedBounds
    """The last seven days."""

    least_covered_day: ServedExtreme | None = None
    """The least coverage of 24 h in the last 28 days; null where no 24 h were observed for half of the time."""

    least_covered_week: ServedExtreme | None = None
    """The least coverage of seven days in the last 28 days."""

    most_broken_day: ServedExtreme | None = None
    """The largest broken share."""

    most_broken_week: ServedExtreme | None = None
    """The largest broken share of seven days."""


@dataclass(frozen=True, kw_only=True)
class PromiseWorst:
    """A span of time in which a promise was kept least."""

    from_: str = field(metadata={"json": "from"})
    """Its begin, RFC 3339."""

    kept_rate: float
    """K_H in it."""

    periods: int
    """Guarantee periods in it."""


@dataclass(frozen=True, kw_only=True)
class PromotionBody:
    """The promotion of a run."""

    promoted_at: str
    """When, RFC 3339."""

    promoted_by: str
    """Its actor: an operator, or the program that retrains."""

    rolled_back: bool
    """Whether a rollback of a later run promoted it."""

    run_id: str
    """The promoted run."""


@dataclass(frozen=True, kw_only=True)
class QuotaAnswer:
    """`GET /quota`: how many GPUs of a pool spot tasks with a guarantee of at least `hours` may hold."""

    aggregation: str
    """The rule by which the forecasts of organizations became the bound."""

    available_gpus: float
    """GPUs that may still be admitted."""

    capacity_gpus: float
    """C."""

    cluster: str
    """The cluster."""

    computed_at: str
    """When it was computed, RFC 3339."""

    demand_bound_gpus: float
    """B_H, the demand bound. It is of demand, and not capped by the capacity: above it the quota is 0."""

    eta: float
    """η."""

    gpu_model: str
    """The GPU model."""

    guarantee_rate: float
    """p."""

    hours: int
    """H."""

    idle_gpus: float
    """S0."""

    inventory_gpus: float
    """f = max(0, capacity − demand bound)."""

    quota_gpus: float
    """Q_H = min(η · f, S0 + S_a(H)), or less at the stage `conservative`."""

    reasons: list[ReasonBody]
    """The reasons for the quota."""

    stage: StageBody
    """The age of the numbers."""

    stale: bool
    """Whether the stage is other than `fresh`."""

    used_gpus: float
    """S_a(H): held by spot tasks inside a guarantee of at least `hours`."""

    valid_until: str
    """When the quota becomes stale, RFC 3339."""

    as_of: str | None = None
    """The time of a virtual clock when this was computed; absent where the service runs on the real one."""

    run_id: str | None = None
    """The training run whose model forecast; null without one."""


@dataclass(frozen=True, kw_only=True)
class QuotaHistory:
    """`GET /v1/quota/history`, newest first."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    hours: int
    """H, the guarantee hours."""

    quotas: list[QuotaRecord]
    """The quotas, newest first."""


@dataclass(frozen=True, kw_only=True)
class QuotaRecord:
    """A quota as it was computed once."""

    computed_at: str
    """When it was computed, RFC 3339."""

    quota_gpus: float
    """Q_H, the quota."""

    run_id: str | None = None
    """The training run whose model forecast; null without one."""


@dataclass(frozen=True, kw_only=True)
class ReasonBody:
    """The reason for a number or a state."""

    code: str
    """The code, for programs."""

    detail: str
    """The sentence, for people."""


@dataclass(frozen=True, kw_only=True)
class RepeatsBody:
    """Weekly repetition of a window, at the local time of the cluster."""

    days: list[WeekdayBody]
    """Days on which a window begins, the day of `from` among them."""

    until: str | None = None
    """No window begins then or later, RFC 3339; absent for ever."""


@dataclass(frozen=True, kw_only=True)
class ReservationBody:
    """A stored reservation."""

    by: str
    """The name of a token, or another actor."""

    cluster: str
    """The cluster."""

    created_at: str
    """When it was created, RFC 3339."""

    from_: str = field(metadata={"json": "from"})
    """Begin of the first window, RFC 3339."""

    gpu_model: str
    """The GPU model."""

    gpus: float
    """GPUs of each window."""

    organization: str
    """The organization that gets the GPUs."""

    to: str
    """End of the first window, RFC 3339."""

    windows: list[ReservedWindowBody]
    """The next windows, the one that is open included, at most eight."""

    id: int | None = None
    """Its number; null for one that was only tried."""

    repeats: RepeatsBody | None = None
    """Weekly repetition; null for a single window."""

    withdrawn_at: str | None = None
    """When it was withdrawn; null while it is not."""

    withdrawn_by: str | None = None
    """The actor who withdrew it."""


@dataclass(frozen=True, kw_only=True)
class ReservationList:
    """`GET /v1/reservations`, by number."""

    reservations: list[ReservationBody]
    """The reservations, by number."""


@dataclass(frozen=True, kw_only=True)
class ReservationRequest:
    """`POST /v1/reservations`: from `from` on and before `to`, GPUs of the pool are for the HP tasks of one
    organization."""

    cluster: str
    """The cluster."""

    from_: str = field(metadata={"json": "from"})
    """Begin of the first window, RFC 3339."""

    gpu_model: str
    """The GPU model."""

    gpus: float
    """GPUs of each window."""

    organization: str
    """The organization that gets the GPUs."""

    to: str
    """End of the first window, RFC 3339; after `from`, at most 366 days, or 24 hours where it repeats."""

    repeats: RepeatsBody | None = None
    """Weekly repetition; absent for a single window."""


@dataclass(frozen=True, kw_only=True)
class ReservationsBody:
    """Reservations for waiting tasks. An absent value is that of the policy."""

    hp_after_s: int | None = None
    """Seconds that an HP task waits before it gets one, at most a week; 600 in `gfs`."""

    hp_heads: int | None = None
    """HP tasks with a reservation at the same time, 0 to 16. 1 in `gfs`."""

    quota_percent: int | None = None
    """A spot task that asks for more of its quota than this, in percent, gets none; 50 in `gfs`, 1 to 100."""

    spot_after_s: int | None = None
    """The same for spot; 21,600 in `gfs`."""

    spot_heads: int | None = None
    """The same for spot; 0 in `gfs`."""


@dataclass(frozen=True, kw_only=True)
class ReservedWindowBody:
    """A window of a reservation, with the probability that its GPUs are there."""

    from_: str = field(metadata={"json": "from"})
    """Its begin, RFC 3339."""

    source: ProbabilitySourceBody
    """Source of the probability."""

    to: str
    """Its end, RFC 3339."""

    probability: float | None = None
    """Probability that the HP demand of others leaves the GPUs during the whole window; null where nothing says
    so."""

    weeks: int | None = None
    """Measured weeks behind the probability, where it is one of history."""


@dataclass(frozen=True, kw_only=True)
class RunBody:
    """A training run."""

    aggregation: str
    """The rule by which the forecasts of organizations become a bound."""

    cluster: str
    """The cluster."""

    code_version: str
    """The version of the program."""

    created_at: str
    """When it was stored, RFC 3339."""

    data_from: str
    """The first hour of its data."""

    data_until: str
    """The first hour after its data."""

    horizon_hours: int
    """Hours ahead that it forecasts."""

    id: str
    """The id of the run."""

    lookback_hours: int
    """Hours of the past that it reads."""

    model: str
    """The name of the model."""

    parameters: dict[str, Any]
    """The parameters of the training."""

    promoted: bool
    """Whether it serves."""

    scores: dict[str, Any]
    """The scores on its validation and test parts."""

    seed: int
    """The seed of its random numbers."""

    series: int
    """Series that it was trained on."""

    train_ms: int
    """How long the training took, in milliseconds."""


@dataclass(frozen=True, kw_only=True)
class RunList:
    """`GET /v1/runs`, newest first."""

    promotions: list[PromotionBody]
    """The promotions, newest first."""

    runs: list[RunBody]
    """The runs, newest first."""


@dataclass(frozen=True, kw_only=True)
class ScoreBody:
    """The choice of nodes and GPUs."""

    by: str
    """`apart` (GFS with HP kept apart), `gfs`, `fullest`, `best-fit`, `dot-prod`, `gpu-packing`, `gpu-
    clustering`, `first-fit`, `random`, `fgd`, `pwr`, `pwr-fgd` or `pwr-fgd-moving`."""

    alpha: float | None = None
    """α: the weight of power in `pwr-fgd`, 0 to 1 in millionths; fragmentation has the rest."""

    beside_gfs: bool | None = None
    """Whether the order of GFS decides among nodes that `fgd`, `pwr` or a mix of them scores equally."""


@dataclass(frozen=True, kw_only=True)
class ServedBounds:
    """Bounds that were served in some span of time."""

    looks: int
    """Samples, one every quarter of an hour, whose hours are over."""

    broken_share: float | None = None
    """GPUs that HP would have taken back, had all been sold, as a share of those that could be sold; null where
    none could."""

    coverage: float | None = None
    """The share of samples at which demand stayed at or below the bound; null without samples."""


@dataclass(frozen=True, kw_only=True)
class ServedExtreme:
    """The worst span of time by one measure."""

    from_: str = field(metadata={"json": "from"})
    """Its begin, RFC 3339."""

    value: float
    """The share."""


@dataclass(frozen=True, kw_only=True)
class SettingsBody:
    """`GET|PUT /v1/pools/{id}/settings`."""

    aggregation: str
    """`auto` (`mixture`; `sum-of-bounds` where no peak of the pool was measured on validation), or the name of
    one."""

    eta_least: float
    """The least η."""

    eta_most: float
    """The largest η."""

    eta_start: float
    """η₀."""

    guarantee_rate: float
    """p."""

    max_quota_wait_s: int
    """θ."""

    min_outcomes: int
    """Outcomes that a move of η needs."""

    offered_hours: list[int]
    """H, rising."""

    state_fresh_s: int
    """A reported state older than this, in seconds, is ignored."""

    grace_s: int | None = None
    """The grace period in seconds."""

    load_s: int | None = None
    """Seconds that a task loads before it works, for policies that defer evictions; without it, 40."""

    max_request_multiple: int | None = None
    """The largest request, in multiples of the GPUs of the pool; without it, 10."""

    outcome_window_s: int | None = None
    """Seconds of outcomes that the eviction rate is computed from; without it, a day."""

    placed_by: PlacedByBody | None = None
    """The side that places the tasks of the pool. Null while it is undecided: the first task or the first
    reported state decides. A change without it leaves it as it is."""

    policy: str | None = None
    """The policy by which Headroom places tasks; without it, `gfs`."""

    policy_parts: PolicyBody | None = None
    """The policy by its parts, instead of `policy`, which is its name in answers."""

    promise: PromiseKindBody | None = None
    """The event whose probability is p. Under `peak`, as in the GFS paper, far more promises are kept than p
    demands. Without it, `kept`."""

    reservations: ReservationsBody | None = None
    """Reservations for tasks that would starve otherwise; an absent value is that of the policy."""

    resize_rest_s: int | None = None
    """Seconds after a change of its pods in which an elastic task gets no more; without it, 60."""

    shadow: bool | None = None
    """Whether decisions on tasks are logged and not carried out."""

    shares: SharesBody | None = None
    """Fair shares of spot among organizations, in place of those of the policy; without both, none are kept."""

    version: int | None = None
    """The number of changes; a request states the version that it changes, so that two writers do not overwrite
    each other."""


@dataclass(frozen=True, kw_only=True)
class ShareList:
    """`GET /v1/pools/{id}/shares`: how organizations stand under the fair shares of spot."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    organizations: list[ShareStanding]
    """Organizations with use that still counts, with spot that waits, or with a weight: the one that is served
    next first."""

    half_life_hours: int | None = None
    """Hours after which GPU time counts half; null where the pool keeps no shares."""


@dataclass(frozen=True, kw_only=True)
class ShareStanding:
    """An organization under fair shares of spot."""

    borrowed_gpus: float
    """GPUs that it holds beyond its part. Others get them back as its tasks and guarantees end."""

    fair_gpus: float
    """Its part of the spot GPUs that all hold now: weighted max-min by what each holds and waits for."""

    level_gpu_hours: float
    """Decayed spot GPU hours, and an hour of the GPUs that it holds, per unit of weight. The lowest level is
    served first."""

    organization: str
    """The organization."""

    spot_gpus: float
    """Spot GPUs that it holds, those on loan left out."""

    waiting_gpus: float
    """GPUs that its waiting spot tasks ask for, those at rest left out."""

    weight: int
    """Its weight; 1 where the settings name none."""

    waits_for: ShareTask | None = None
    """The task that organizations above it leave room for; null where none of its tasks could start."""


@dataclass(frozen=True, kw_only=True)
class ShareTask:
    """A task that its organization waits for."""

    gpus: float
    """GPUs that it asks for."""

    task: str
    """The task."""


@dataclass(frozen=True, kw_only=True)
class SharesBody:
    """Fair shares of spot among organizations: those with the least decayed GPU time per unit of weight are
    served first."""

    half_life_hours: int
    """Hours after which GPU time counts half, 1 to 2,160. A day to a week suits most pools."""

    weights: dict[str, int] | None = None
    """Weights by organization, 1 to 1,000,000; 1 for each that is not named. One that the pool does not know yet
    counts from its first task on."""


@dataclass(frozen=True, kw_only=True)
class StartAnswer:
    """`GET /v1/tasks/{id}/eta` and `POST /v1/tasks/eta`: when a task will start."""

    as_of: str
    """When it was forecast, RFC 3339."""

    class_: TaskClassBody = field(metadata={"json": "class"})
    """The class of the task."""

    cluster: str
    """The cluster."""

    doubts: list[ReasonBody]
    """Why the answer may be off."""

    futures: int
    """How many futures of the pool were drawn; 0 where none was needed."""

    gpu_model: str
    """The GPU model."""

    horizon_hours: int
    """No start is forecast beyond so many hours."""

    start: StartBody
    """When it will start; of a running task, when it has started."""

    starts_now: bool
    """Whether it would start at once."""

    calibration: StartCoverageBody | None = None
    """How earlier forecasts of this class fared; null while there are few."""

    guarantee_hours: int | None = None
    """Guarantee hours; null for a task at will."""

    status: TaskStatusBody | None = None
    """`waiting` or `running`; null for a task that is not submitted."""

    task: str | None = None
    """The id of the task; null for one that is not submitted."""

    waits: ReasonBody | None = None
    """Why it does not start now."""


@dataclass(frozen=True, kw_only=True)
class StartBody:
    """The distribution of a start. A time beyond the horizon is null."""

    interval_50: StartIntervalBody
    """The interval that holds the start with 50 %."""

    interval_90: StartIntervalBody
    """The same with 90 %."""

    started_by: list[StartedByBody]
    """The probability of a start by each hour up to 24, and by each sixth one up to 72."""

    p50: MomentBody | None = None
    """The median."""

    p90: MomentBody | None = None
    """The time by which it has started with 90 %."""


@dataclass(frozen=True, kw_only=True)
class StartCoverageBody:
    """How earlier forecasts of starts fared, of a class in a pool."""

    class_: TaskClassBody = field(metadata={"json": "class"})
    """The class."""

    coverage_50: float
    """Share of starts inside of the interval that was stated with 50 %."""

    coverage_90: float
    """The same of 90 %."""

    pinball_s: float
    """Mean pinball loss over the levels 0.05, 0.1, 0.25, 0.5, 0.75, 0.9 and 0.95, in seconds."""

    scored: int
    """Forecasts whose start is known."""

    class_mean_pinball_s: float | None = None
    """The same of the mean wait of the class in the week before, in seconds; null while few forecasts had it
    beside them."""


@dataclass(frozen=True, kw_only=True)
class StartIntervalBody:
    """An interval of a start. A time beyond the horizon is null."""

    from_: MomentBody | None = field(default=None, metadata={"json": "from"})
    """Its begin."""

    to: MomentBody | None = None
    """Its end."""


@dataclass(frozen=True, kw_only=True)
class StartQuestion:
    """`POST /v1/tasks/eta`: a task that is not submitted."""

    class_: TaskClassBody = field(metadata={"json": "class"})
    """The class of the task."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    gpus_per_pod: float
    """A share of one GPU such as 0.25, or whole ones."""

    organization: str
    """The organization."""

    affinity: AffinityBody | None = None
    """The affinity of a pod's whole GPUs."""

    cpu_milli: int | None = None
    """Thousandths of a virtual CPU, of each pod; 0 for no requirement."""

    guarantee_hours: int | None = None
    """The guarantee hours that a spot task asks for; without them, it runs at will."""

    memory_mib: int | None = None
    """Memory of each pod, in MiB."""

    pods: int | None = None
    """The number of pods, all alike."""


@dataclass(frozen=True, kw_only=True)
class StartSpanBody:
    """Median and 90 % of a start, in short."""

    as_of: str
    """When it was forecast, RFC 3339."""

    before: str | None = None
    """The median as it was announced before, RFC 3339, in an event; null beyond the horizon."""

    p50: str | None = None
    """The median, RFC 3339; null beyond the horizon."""

    p90: str | None = None
    """The time by which it has started with 90 %, RFC 3339; null beyond the horizon."""


@dataclass(frozen=True, kw_only=True)
class StartedByBody:
    """The probability of a start by a time."""

    at: str
    """RFC 3339."""

    hours: int
    """Hours from the forecast on."""

    probability: float
    """From 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class StatementAnswer:
    """`GET /v1/statement`."""

    from_: str = field(metadata={"json": "from"})
    """The first instant, RFC 3339."""

    organizations: list[StatementLine]
    """By pool and organization."""

    pools: list[StatementPool]
    """By pool; none in the statement of one organization."""

    preemptions: list[StatementPreemption]
    """Preemptions by pair of organizations, the most lost work first."""

    sources: list[StatementSource]
    """The accounts that it is made of, by pool."""

    to: str
    """The first instant after it, RFC 3339."""

    currency: str | None = None
    """ISO 4217; null without a file of prices."""


@dataclass(frozen=True, kw_only=True)
class StatementLine:
    """An organization in a pool."""

    cluster: str
    """The cluster."""

    evictions: int
    """Evictions of its spot tasks for HP."""

    gpu_hours: GpuHoursBody
    """Its GPU-hours."""

    gpu_model: str
    """The GPU model."""

    organization: str
    """The organization."""

    promises: PromiseCountsBody
    """Its guarantees that ended."""

    charges: ChargesBody | None = None
    """Its charges; null without prices of the GPU model."""

    day: str | None = None
    """The day of UTC, in a statement by day."""


@dataclass(frozen=True, kw_only=True)
class StatementPool:
    """A pool."""

    accounted_hours: float
    """Hours that were accounted for: fewer than the statement has where the accounts began later, or were not
    kept for a while."""

    cluster: str
    """The cluster."""

    evictions: int
    """Evictions of spot tasks for HP."""

    gpu_hours: GpuHoursBody
    """The sum of its organizations."""

    gpu_model: str
    """The GPU model."""

    pool_gpu_hours: PoolGpuHoursBody
    """GPU-hours that no task held."""

    promises: PromiseCountsBody
    """Guarantees that ended."""

    allocation: float | None = None
    """The share of the capacity that tasks held; null without capacity."""

    charges: ChargesBody | None = None
    """The sum of their charges; null without prices of the GPU model."""

    costs: CostsBody | None = None
    """Its costs; null without prices of the GPU model."""

    day: str | None = None
    """The day of UTC, in a statement by day."""

    goodput: float | None = None
    """The share of the capacity in which tasks ran whose work was not lost; null without capacity."""


@dataclass(frozen=True, kw_only=True)
class StatementPreemption:
    """Evictions of one organization's spot tasks by the HP tasks of another."""

    broken: int
    """Those of them inside a guarantee."""

    by: str
    """The organization of the HP tasks."""

    cluster: str
    """The cluster."""

    evictions: int
    """Evicted runs."""

    gpu_model: str
    """The GPU model."""

    lost_gpu_hours: float
    """Work since the last checkpoint."""

    of: str
    """The organization of the spot tasks."""


@dataclass(frozen=True, kw_only=True)
class StatementSource:
    """The accounts of a pool."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    until: str
    """The end of what the statement has of it, RFC 3339: the present, or the end of its last stored day where
    another service leads it."""

    missing: str | None = None
    """The reason for which later time is missing; null where nothing is."""


@dataclass(frozen=True, kw_only=True)
class StepBody:
    """One hour's demand as a distribution, in GPUs."""

    mean_gpus: float
    """The mean. Rare jumps count in it, so that it may be above the 0.95 quantile where demand stands still."""

    q50_gpus: float
    """The median."""

    q90_gpus: float
    """The 0.9 quantile."""

    q95_gpus: float
    """The 0.95 quantile."""

    stddev_gpus: float
    """The standard deviation."""

    step: int
    """From 1."""

    target_time: str
    """The start of the hour that is forecast."""


@dataclass(frozen=True, kw_only=True)
class StepTotalBody:
    """The pool's total at one step."""

    mean_gpus: float
    """The mean that bounds rest on."""

    stddev_gpus: float
    """The standard deviation."""

    step: int
    """The hour ahead, from 1."""

    lowered_gpus: float | None = None
    """By how much less the forecast expects where demand fell within the last hour; a peak may come again, so
    that bounds do not follow. 0 in explanations stored before it was known."""


@dataclass(frozen=True, kw_only=True)
class SupplyExplanation:
    """S0 and Sa."""

    ceiling_gpus: float
    """S0 + S_a(H)."""

    estimated: bool
    """Whether no fresh state was reported: then S0 is capacity less the latest demand, and Sa is 0."""

    idle_gpus: float
    """S0."""

    latest_demand_gpus: float
    """The HP demand of the last measured hour."""

    longest_quota_wait_s: int
    """The longest wait of a spot task that only the quota refuses, in seconds."""

    spot_gpus: float
    """S_a(H)."""


@dataclass(frozen=True, kw_only=True)
class TaskAnswer:
    """A task: its request and its state."""

    class_: TaskClassBody = field(metadata={"json": "class"})
    """The class of the task."""

    cluster: str
    """The cluster."""

    cpu_milli: int
    """Thousandths of a virtual CPU, of each pod."""

    detail: TaskDetail
    """Its run, or the reason for which it waits."""

    gpu_model: str
    """The GPU model."""

    gpus_per_pod: float
    """A share of one GPU, or whole ones."""

    id: str
    """The id of the task."""

    memory_mib: int
    """Memory of each pod, in MiB."""

    organization: str
    """The organization."""

    pods: int
    """The number of pods."""

    shadow: bool
    """Whether the pool is in shadow: the decision was not carried out."""

    status: TaskStatusBody
    """The status of the task."""

    submitted: str
    """When it was submitted, RFC 3339."""

    updated: str
    """When it last changed, RFC 3339."""

    affinity: AffinityBody | None = None
    """Where its GPUs lie together."""

    elastic: ElasticBody | None = None
    """How far its pods come and go."""

    guarantee_hours: int | None = None
    """Guarantee hours; null for a task at will."""

    start: StartSpanBody | None = None
    """Its expected start, while it waits; absent before the first forecast."""


@dataclass(frozen=True, kw_only=True)
class TaskBody:
    """`POST /v1/tasks`: equal pods, placed all or none."""

    class_: TaskClassBody = field(metadata={"json": "class"})
    """The class of the task."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    gpus_per_pod: float
    """A share of one GPU such as 0.25, or whole ones; a pod without GPUs is refused."""

    id: str
    """The submitter's own id, never used again in the pool: it identifies a repeated request."""

    organization: str
    """The organization."""

    affinity: AffinityBody | None = None
    """The affinity of a pod's whole GPUs; without it, any GPUs of a node do."""

    cpu_milli: int | None = None
    """Thousandths of a virtual CPU, of each pod; 0 for no requirement."""

    elastic: ElasticBody | None = None
    """The range in which the pods of a spot task may change while it runs; without it, it runs on all of them or
    not at all."""

    guarantee_hours: int | None = None
    """The guarantee hours that a spot task asks for; without them, it runs at will."""

    memory_mib: int | None = None
    """Memory of each pod, in MiB."""

    pods: int | None = None
    """The number of pods, all alike."""


@dataclass(frozen=True, kw_only=True)
class TaskCut:
    """The cut of a task's last run."""

    at: str
    """When, RFC 3339."""

    by: str
    """The HP task, the organization of the reservation, or the node. Empty for a token with an organization
    where another one has evicted it."""

    code: CutCodeBody
    """The reason."""

    deadline: str
    """The end of its grace period."""


@dataclass(frozen=True, kw_only=True)
class TaskDetail:
    """The state of a task beside its request."""

    cut: TaskCut | None = None
    """The cut of its last run."""

    run: TaskRun | None = None
    """Its run, while it runs."""

    victims: list[str] | None = None
    """Tasks that were evicted for it; for a token with an organization, its own alone."""

    waits: ReasonBody | None = None
    """The reason for which it waits; of its last change, where the service that answers does not lead the
    cluster."""


@dataclass(frozen=True, kw_only=True)
class TaskExplanation:
    """`GET /v1/tasks/{id}/explain`."""

    capacity_gpus: float
    """C, the capacity."""

    idle_gpus: float
    """GPUs that a task could have now: those without one, and those that elastic tasks have on loan and give
    back."""

    policy: str
    """The policy of the pool."""

    promises: list[PromiseBody]
    """The promises of the pool, by guarantee hours."""

    reason: ReasonBody
    """The reason for its present state."""

    task: TaskAnswer
    """The task."""


@dataclass(frozen=True, kw_only=True)
class TaskList:
    """`GET /v1/tasks`."""

    tasks: list[TaskAnswer]
    """Waiting tasks in the order of the queue, running tasks by name."""

    total: int
    """The number of tasks, listed or not."""


@dataclass(frozen=True, kw_only=True)
class TaskRun:
    """The run of a task."""

    places: list[PlaceBody]
    """One for each pod."""

    saved: str
    """The time of its last checkpoint."""

    since: str
    """When its places were decided."""

    starts: str
    """When its GPUs are free: later where victims have a grace period."""

    guarantee: GuaranteeRecord | None = None
    """Its guarantee, while it lasts."""

    lent: list[PlaceBody] | None = None
    """Pods of an elastic task on lent GPUs, which another task may get at any time, beside those in `places`."""


@dataclass(frozen=True, kw_only=True)
class TopologyBody:
    """The topology of a node: its NUMA nodes one by one, or the name of a known server."""

    numa_nodes: list[NumaNodeBody] | None = None
    """The NUMA nodes."""

    nvlink_islands: list[list[int]] | None = None
    """Groups of GPUs that NVLink connects."""

    preset: str | None = None
    """`rtx4090-8` or `a100-8`, instead of the other fields."""


@dataclass(frozen=True, kw_only=True)
class UsageBatch:
    """`POST /v1/usage`. A row replaces an earlier one of the same series and hour, so that a repeated batch
    changes nothing."""

    rows: list[UsageRowBody]
    """The rows."""


@dataclass(frozen=True, kw_only=True)
class UsageReceipt:
    """Counts of the rows of a batch."""

    changed: int
    """Rows that replaced another value."""

    inserted: int
    """Rows that are new."""

    unchanged: int
    """Rows that were stored before."""


@dataclass(frozen=True, kw_only=True)
class UsageRowBody:
    """The demand of one organization in one hour."""

    cluster: str
    """The cluster."""

    demand_gpus: float
    """HP GPUs running + pending, peak within the hour; at most 10,000,000."""

    gpu_model: str
    """The GPU model."""

    hour: str
    """RFC 3339, the start of the hour."""

    organization: str
    """`*` for the pool's own hourly peak, which is at least the demand of each organization."""

    demand_at_end_gpus: float | None = None
    """HP GPUs running + pending at the end of the hour, at most `demand_gpus`; left out where it is not known.
    The means and medians of the next hours are better with it."""


@dataclass(frozen=True, kw_only=True)
class VictimsBody:
    """The choice of victims."""

    by: str
    """`least-waste`, `tightest` or `random`."""

    idle_first: bool | None = None
    """Whether HP takes idle GPUs before it evicts: a choice for `tightest` alone."""

    keeps_guarantees: bool | None = None
    """Whether tasks inside their guarantee are kept before others, for `least-waste`."""

    usage_weight: float | None = None
    """β of GFS Eq. 18, for `least-waste`."""

    usage_window_s: int | None = None
    """Seconds over which GPU time is counted in Eq. 18, for `least-waste`."""


@dataclass(frozen=True, kw_only=True)
class WhatIfAnswer:
    """`GET /v1/quota/what-if`."""

    cluster: str
    """The cluster."""

    gpu_model: str
    """The GPU model."""

    hours: int
    """H, the guarantee hours."""

    now: WhatIfSide
    """As it was last computed."""

    steps: list[str]
    """The differences, in the order of the computation."""

    then: WhatIfSide
    """As it would be."""


@dataclass(frozen=True, kw_only=True)
class WhatIfSide:
    """A quota as it is, or would be."""

    available_gpus: float
    """GPUs that could still be admitted while the quota is not `conservative`: `/quota` says at which stage it
    is."""

    capacity_gpus: float
    """C, the capacity."""

    demand_bound_gpus: float
    """B_H, the demand bound."""

    eta: float
    """η, the safety coefficient."""

    guarantee_rate: float
    """p, the guarantee rate."""

    idle_gpus: float
    """S0, idle GPUs."""

    inventory_gpus: float
    """f, the inventory."""

    quota_gpus: float
    """Q_H, the quota."""

    reasons: list[ReasonBody]
    """The reasons for the quota."""

    used_gpus: float
    """S_a(H), GPUs of spot tasks inside a guarantee."""
