"""The operator's path through the Python package: what a scheduler, a user and an analyst ask of a running service.

    walk.py API READ_TOKEN_FILE ADMIN_TOKEN_FILE CLUSTER GPU_MODEL
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TypeVar

from headroom import AsyncHeadroom, Headroom, Refused, frames, is_valid, models

T = TypeVar("T")


def until(ask: Callable[[], T], good: Callable[[T], bool]) -> T:
    """Asks until the answer is good."""
    for _ in range(200):
        try:
            answer = ask()
            if good(answer):
                return answer
        except Refused as fault:
            if fault.status != 404:
                raise
        time.sleep(0.1)
    raise AssertionError("the answer does not become good")


def reads(api: str, token: str, cluster: str, gpu_model: str) -> None:
    """An analyst with a token that reads."""
    with Headroom(api, token_file=token) as client:
        quota = until(lambda: client.quota(cluster, gpu_model, hours=4), lambda quota: quota.stage == "fresh")
        assert is_valid(quota) and quota.available_gpus > 0, quota
        pool = client.pool(cluster, gpu_model)
        explained = pool.explain(4)
        assert explained.steps and explained.quota.quota_gpus == quota.quota_gpus, explained
        smaller = pool.what_if(4, capacity_change_gpus=-20)
        assert smaller.now.capacity_gpus - smaller.then.capacity_gpus == 20, smaller
        demand = frames.demand(pool.demand(hours=48))
        assert demand.shape[0] == 48 and {"org-000", "org-001", "*"} == set(demand.columns), demand
        assert len(frames.forecast(pool.forecast())) == 8, "two organizations, four hours"
        history = frames.quotas(pool.history(4))
        assert history["quota_gpus"].iloc[-1] == quota.quota_gpus, history
        assert pool.promises(days=7).guarantee_rate == 0.9
        assert client.runs(cluster).runs[0].promoted
        try:
            pool.submit(organization="org-000")
        except Refused as fault:
            assert fault.status == 403 and fault.code == "forbidden", fault
        else:
            raise AssertionError("a token that reads has submitted a task")
        try:
            client.quota(cluster, gpu_model, hours=5)
        except Refused as fault:
            assert fault.code == "unknown-hours" and "4" in fault.known, fault


def reports(client: Headroom, cluster: str) -> None:
    """A scheduler outside reports what it holds, and how guarantees ended."""
    pool = client.pool(cluster, "H800")
    ended = datetime.now(timezone.utc) - timedelta(minutes=10)
    hour = ended.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    row = models.UsageRowBody(
        hour=hour.strftime("%Y-%m-%dT%H:%M:%SZ"), cluster=cluster, gpu_model="H800", organization="org-000", demand_gpus=12.0
    )
    assert client.report_usage([row]).inserted == 1
    # A new pool is known once quotas have been renewed with its usage.
    assert until(lambda: pool.report_state(capacity_gpus=64, idle_gpus=20, spot_gpus_by_hours={4: 8}), lambda taken: taken)
    assert pool.state().spot_gpus_by_guarantee_hours == {"4": 8.0}
    outcome = models.OutcomeBody(
        event_id="run-1",
        cluster=cluster,
        gpu_model="H800",
        guarantee_hours=4,
        kind="kept",
        ended_at=ended.strftime("%Y-%m-%dT%H:%M:%SZ"),
        gpus=8.0,
    )
    assert client.report_outcomes([outcome]) == {"run-1": "recorded"}
    assert client.report_outcomes([outcome]) == {"run-1": "repeated"}


def places(client: Headroom, cluster: str, gpu_model: str) -> None:
    """Tasks that Headroom places: submitted, promised, evicted, finished, cancelled."""
    pool = client.pool(cluster, gpu_model)
    for number in range(2):
        client.put_node(f"n{number}", models.NodeBody(cluster=cluster, gpu_model=gpu_model, gpus=8))
    assert len(client.nodes(cluster).nodes) == 2
    tried = pool.submit(id="sweep", organization="org-000", gpus_per_pod=8, dry_run=True)
    assert tried.status == "running" and tried.shadow, tried
    seen: list[models.EventBody] = []
    follower = threading.Thread(target=lambda: seen.extend(itertools.islice(pool.events(after="0.0"), 4)), daemon=True)
    assert pool.submit(id="sweep", organization="org-000", gpus_per_pod=8, pods=2).status == "running"
    follower.start()
    again = pool.submit(id="sweep", organization="org-000", gpus_per_pod=8, pods=2)
    assert again.id == "sweep" and again.status == "running", again
    assert [task.id for task in pool.tasks("running").tasks] == ["sweep"]
    assert pool.checkpoint("sweep").status == "running"
    hp = pool.submit(id="train", organization="org-001", task_class="hp", gpus_per_pod=8)
    assert hp.status == "running" and hp.detail.victims == ["sweep"], hp
    why = pool.why("sweep")
    assert why.task.status == "waiting" and why.reason.code, why
    assert [task.id for task in pool.tasks("waiting").tasks] == ["sweep"]
    when = pool.when("sweep")
    assert when.status == "waiting" and when.doubts and len(when.start.started_by) == 32, when
    asked = pool.when_submitted(organization="org-000", gpus_per_pod=8, pods=2)
    assert asked.task is None and asked.waits is not None and not asked.starts_now, asked
    deadline = datetime.now(timezone.utc) + timedelta(hours=20)
    prices = pool.prices(organization="org-000", gpus_per_pod=8, runs_s=600, ends_by=deadline)
    assert [price.class_ for price in prices.prices][-1] == "hp" and prices.cheapest_in_time is not None, prices
    assert pool.finish("train").status == "finished"
    assert pool.cancel("sweep").status == "deleted"
    assert [task.status for task in pool.follow("train")] == ["finished"]
    follower.join(20)
    kinds = {event.kind for event in seen if event.task is not None}
    assert {"started", "evicted"} <= kinds, seen
    nodes = pool.nodes(hours=1).nodes
    assert [node.gpus for node in nodes] == [8, 8] and all(node.idle_gpus == 8 for node in nodes), nodes
    drawn = pool.submit(organization="org-000", gpus_per_pod=0.25)
    assert drawn.id.startswith("task-") and drawn.status == "running", drawn
    settings = pool.settings()
    changed = pool.put_settings(models.SettingsBody(**{**vars_of(settings), "grace_s": 45}))
    assert changed.grace_s == 45, changed
    assert pool.shares().half_life_hours is None, pool.shares()


def reserves(client: Headroom, cluster: str, gpu_model: str) -> None:
    """Windows that are sold ahead: tried, sold, listed, withdrawn."""
    pool = client.pool(cluster, gpu_model)
    begin = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=30)
    end = begin + timedelta(hours=2)
    tried = pool.reserve(organization="org-000", gpus=4, begin=begin, end=end, dry_run=True)
    assert tried.id is None and len(tried.windows) == 1 and pool.reservations().reservations == [], tried
    sold = pool.reserve(organization="org-000", gpus=4, begin=begin, end=end, days=["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
    again = pool.reserve(organization="org-000", gpus=4, begin=begin, end=end, days=["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
    assert sold.id is not None and again.id == sold.id and len(sold.windows) == 8, (sold, again)
    assert client.reservation(sold.id).repeats == sold.repeats
    assert pool.reservations_ics().count("BEGIN:VEVENT") > 50
    # The quota of before the nodes has another capacity than they have.
    renewed = until(lambda: pool.quota(4), lambda quota: quota.capacity_gpus == 16)
    try:
        pool.reserve(organization="org-001", gpus=renewed.capacity_gpus - 2, begin=begin, end=end)
    except Refused as fault:
        assert fault.code == "oversold", fault
    else:
        raise AssertionError("GPUs are sold twice")
    client.withdraw(sold.id)
    client.withdraw(sold.id)
    assert pool.reservations().reservations == [] and len(pool.reservations(past=True).reservations) == 1


def vars_of(settings: models.SettingsBody) -> dict[str, object]:
    return {name: getattr(settings, name) for name in settings.__dataclass_fields__}


def charges(client: Headroom, cluster: str, gpu_model: str) -> None:
    """The statement of the month."""
    answer = client.statement(cluster=cluster)
    assert answer.currency == "EUR" and [pool.gpu_model for pool in answer.pools] == [gpu_model], answer
    (pool,) = answer.pools
    held = pool.gpu_hours
    idle = pool.pool_gpu_hours
    parts = held.hp + held.guaranteed + held.at_will + held.handover + idle.idle_offered + idle.idle_reserved + idle.drained
    assert abs(parts - idle.capacity) < 1e-9, pool
    assert pool.evictions == 1 and [(one.by, one.of) for one in answer.preemptions] == [("org-001", "org-000")], answer
    frame = frames.statement(client.statement(by="day"))
    assert set(frame["organization"]) == {"org-000", "org-001"} and "total_charge" in frame, frame


async def asynchronously(api: str, token: str, cluster: str, gpu_model: str) -> None:
    """The same service, asked by the asynchronous client at once."""
    async with AsyncHeadroom(api, token_file=token) as client:
        pool = client.pool(cluster, gpu_model)
        quota, explained, listed = await asyncio.gather(pool.quota(4), pool.explain(4), client.pools())
        assert explained.quota.hours == quota.hours and gpu_model in {one.gpu_model for one in listed.pools}
        task = await pool.submit(id="async", organization="org-000", gpus_per_pod=1)
        assert task.status == "running", task

        async def finish() -> None:
            await asyncio.sleep(0.2)
            await pool.finish("async")

        finishing = asyncio.create_task(finish())
        statuses = [task.status async for task in pool.follow("async", every_s=0.1)]
        await finishing
        assert statuses == ["running", "finished"], statuses
        async for one in pool.quotas(4):
            assert one.hours == 4
            break


def main(api: str, read: str, admin: str, cluster: str, gpu_model: str) -> None:
    reads(api, read, cluster, gpu_model)
    with Headroom(api, token_file=admin) as client:
        reports(client, cluster)
        places(client, cluster, gpu_model)
        charges(client, cluster, gpu_model)
        reserves(client, cluster, gpu_model)
    asyncio.run(asynchronously(api, admin, cluster, gpu_model))


if __name__ == "__main__":
    main(*sys.argv[1:])
