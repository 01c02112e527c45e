"""Answers as data frames. Needs the extra: `pip install headroom[frames]`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from . import models

if TYPE_CHECKING:
    import pandas


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as fault:
        raise ImportError("data frames need pandas: pip install 'headroom[frames]'") from fault
    return pandas


def quotas(history: models.QuotaHistory) -> pandas.DataFrame:
    """The history of a quota, oldest first, by the time of computation: `quota_gpus`, `run_id`."""
    pd = _pandas()
    rows = [asdict(one) for one in reversed(history.quotas)]
    frame = pd.DataFrame(rows, columns=["computed_at", "quota_gpus", "run_id"])
    frame["computed_at"] = pd.to_datetime(frame["computed_at"], utc=True)
    indexed: pandas.DataFrame = frame.set_index("computed_at")
    return indexed


def demand(answer: models.DemandAnswer) -> pandas.DataFrame:
    """The measured demand by hour: a column for each organization, and `*` for the pool."""
    pd = _pandas()
    columns = {one.organization: one.demand_gpus for one in answer.organizations}
    columns["*"] = answer.pool
    hours = pd.date_range(pd.to_datetime(answer.from_, utc=True), periods=len(answer.pool), freq="h", name="hour")
    frame: pandas.DataFrame = pd.DataFrame(columns, index=hours, dtype=float)
    return frame


def forecast(answer: models.ForecastAnswer) -> pandas.DataFrame:
    """The forecast of each organization: one row for each organization and hour ahead."""
    pd = _pandas()
    rows = [
        {"organization": one.organization, "origin": one.origin, **asdict(step)}
        for one in answer.organizations
        for step in one.steps
    ]
    frame: pandas.DataFrame = pd.DataFrame(rows)
    if rows:
        frame["target_time"] = pd.to_datetime(frame["target_time"], utc=True)
    return frame


def statement(answer: models.StatementAnswer) -> pandas.DataFrame:
    """A statement: one row for each pool and organization, in GPU-hours, with charges where there are prices."""
    pd = _pandas()
    rows = []
    for line in answer.organizations:
        row: dict[str, Any] = {"day": line.day, "cluster": line.cluster, "gpu_model": line.gpu_model, "organization": line.organization}
        row |= {f"{name}_gpu_hours": value for name, value in asdict(line.gpu_hours).items()}
        row |= {f"promises_{name}": value for name, value in asdict(line.promises).items()}
        row["evictions"] = line.evictions
        if line.charges is not None:
            row |= {f"{name}_charge": value for name, value in asdict(line.charges).items()}
        rows.append(row)
    frame: pandas.DataFrame = pd.DataFrame(rows)
    return frame
