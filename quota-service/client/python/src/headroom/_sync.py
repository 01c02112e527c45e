"""The synchronous client. `_async.py` has the same methods: a test holds them side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeVar

import httpx

from . import _calls, models
from ._calls import Call, Lines, Paths, Status, part, pauses_s, some, task_of, text_of, with_body
from ._errors import Unavailable
from ._options import Options

T = TypeVar("T")


class Headroom:
    """A client of one service. Requests that fail because it is away or busy are sent again for `patience_s` seconds.

    Every write may be repeated, since it names what it writes: a task its id, an outcome its event id, a state its pool.
    """

    def __init__(
        self,
        api: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca_file: str | Path | None = None,
        patience_s: float = 30.0,
        limit_s: float = 15.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`token_file` is read for each request; `limit_s` bounds one request; `transport` is for tests."""
        self._options = Options(api, token, token_file, patience_s, limit_s)
        self._http = httpx.Client(
            base_url=self._options.api, verify=self._options.verify(ca_file), timeout=limit_s, transport=transport
        )

    def __enter__(self) -> Headroom:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def pool(self, cluster: str, gpu_model: str) -> Pool:
        """The requests of one pool."""
        return Pool(self, cluster, gpu_model)

    def quota(self, cluster: str, gpu_model: str, hours: int) -> models.QuotaAnswer:
        """GPUs of a pool that spot tasks with a guarantee of at least so many hours may hold."""
        return self.pool(cluster, gpu_model).quota(hours)

    def pools(self) -> models.PoolList:
        """Every pool that the token may see."""
        return self._answer(Call("GET", "/v1/pools", models.PoolList))

    def report_outcomes(self, outcomes: Sequence[models.OutcomeBody]) -> dict[str, str]:
        """Reports ended guarantees; the result for each event id: recorded, repeated or conflicting."""
        receipt = self._answer(_calls.outcomes(outcomes))
        return {one.event_id: one.result for one in receipt.outcomes}

    def report_usage(self, rows: Sequence[models.UsageRowBody]) -> models.UsageReceipt:
        """Reports the demand of past hours; a row replaces an earlier one of the same series and hour."""
        return self._answer(_calls.usage(rows))

    def nodes(self, cluster: str) -> models.NodeList:
        """The nodes of a cluster."""
        return self._answer(Call("GET", "/v1/nodes", models.NodeList, {"cluster": cluster}))

    def put_node(self, id: str, node: models.NodeBody) -> models.NodeBody:  # noqa: A002: the name of the field
        """Adds a node, or changes it."""
        return self._answer(with_body("PUT", f"/v1/nodes/{part(id)}", models.NodeBody, node))

    def reservation(self, id: int) -> models.ReservationBody:  # noqa: A002: the name of the field
        """A reservation with its next windows."""
        return self._answer(Call("GET", f"/v1/reservations/{part(id)}", models.ReservationBody))

    def withdraw(self, id: int) -> None:  # noqa: A002: the name of the field
        """Withdraws a reservation; quotas follow at once. A second withdrawal changes nothing."""
        self._answer(Call("DELETE", f"/v1/reservations/{part(id)}", type(None)))

    def runs(self, cluster: str) -> models.RunList:
        """The training runs of a cluster with their scores and promotions."""
        return self._answer(Call("GET", "/v1/runs", models.RunList, {"cluster": cluster}))

    def statement(
        self,
        month: str | None = None,
        *,
        by: Literal["month", "day"] = "month",
        cluster: str | None = None,
        gpu_model: str | None = None,
        organization: str | None = None,
    ) -> models.StatementAnswer:
        """Where the GPU time of a month (`2026-11`; without one the present) went, and its price."""
        return self._answer(_calls.statement(month, by, cluster, gpu_model, organization))

    def _answer(self, call: Call[T]) -> T:
        """The answer to a call, tried for as long as the client is patient."""
        until, pauses = self._options.until(), pauses_s()
        while True:
            try:
                return _calls.read(call, self._send(call))
            except Unavailable as fault:
                pause_s = self._options.pause_s(until, next(pauses), fault.retry_after_s)
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    def _send(self, call: Call[T]) -> httpx.Response:
        try:
            return self._http.request(
                call.method,
                call.path,
                params=dict(call.query),
                json=call.body,
                headers=self._options.headers(call.headers),
                timeout=self._options.limit_s + call.held_s,
            )
        except httpx.RequestError as fault:
            raise _calls.no_answer(self._options.api, fault) from fault


class Pool:
    """The requests of one pool: of a cluster and a GPU model."""

    def __init__(self, client: Headroom, cluster: str, gpu_model: str) -> None:
        self._client = client
        self._paths = Paths(cluster, gpu_model)
        self.cluster = cluster
        self.gpu_model = gpu_model

    def quota(self, hours: int) -> models.QuotaAnswer:
        """GPUs that spot tasks with a guarantee of at least so many hours may hold."""
        return self._client._answer(self._paths.quota(hours))

    def explain(self, hours: int) -> models.Explanation:
        """Every number behind a quota."""
        return self._client._answer(self._paths.get("/v1/quota/explain", models.Explanation, hours=hours))

    def history(self, hours: int, limit: int | None = None) -> models.QuotaHistory:
        """Quotas as they were computed, newest first; `headroom.frames` has them as a data frame."""
        return self._client._answer(self._paths.get("/v1/quota/history", models.QuotaHistory, hours=hours, limit=limit))

    def what_if(
        self,
        hours: int,
        *,
        capacity_change_gpus: float | None = None,
        demand_change_gpus: float | None = None,
        guarantee_rate: float | None = None,
        eta: float | None = None,
    ) -> models.WhatIfAnswer:
        """The quota under another capacity, demand, guarantee rate or eta. Nothing changes."""
        call = self._paths.get(
            "/v1/quota/what-if",
            models.WhatIfAnswer,
            hours=hours,
            capacity_change_gpus=capacity_change_gpus,
            demand_change_gpus=demand_change_gpus,
            guarantee_rate=guarantee_rate,
            eta=eta,
        )
        return self._client._answer(call)

    def forecast(self, organization: str | None = None) -> models.ForecastAnswer:
        """The forecast demand of each organization, or of one."""
        return self._client._answer(self._paths.get("/v1/forecast", models.ForecastAnswer, organization=organization))

    def demand(self, hours: int | None = None) -> models.DemandAnswer:
        """The measured demand, hour by hour."""
        return self._client._answer(self._paths.get("/v1/demand", models.DemandAnswer, hours=hours))

    def promises(self, days: int | None = None) -> models.PromiseReport:
        """Promises sold, kept and broken."""
        return self._client._answer(self._paths.get("/v1/promises", models.PromiseReport, days=days))

    def submit(
        self,
        *,
        organization: str,
        id: str | None = None,  # noqa: A002: the name of the field
        task_class: Literal["hp", "spot"] = "spot",
        gpus_per_pod: float = 1.0,
        pods: int = 1,
        guarantee_hours: int | None = None,
        cpu_milli: int = 0,
        memory_mib: int = 0,
        affinity: models.AffinityBody | None = None,
        elastic: models.ElasticBody | None = None,
        dry_run: bool = False,
    ) -> models.TaskAnswer:
        """Submits a task: it runs at once, or waits with its reason. The id makes a repeated submission one; without one it is drawn.

        With `dry_run` the decision is that on a submission now, and nothing is submitted.
        """
        task = task_of(
            self.cluster,
            self.gpu_model,
            organization=organization,
            id=id,
            task_class=task_class,
            gpus_per_pod=gpus_per_pod,
            pods=pods,
            guarantee_hours=guarantee_hours,
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            affinity=affinity,
            elastic=elastic,
        )
        path = "/v1/tasks/dry-run" if dry_run else "/v1/tasks"
        return self._client._answer(with_body("POST", path, models.TaskAnswer, task))

    def task(self, task: str) -> models.TaskAnswer:
        """A task as it is, or was when it ended."""
        return self._client._answer(self._paths.task("GET", task, "", models.TaskAnswer))

    def tasks(self, status: Status, limit: int | None = None) -> models.TaskList:
        """Waiting tasks with their reasons, or running ones."""
        return self._client._answer(self._paths.get("/v1/tasks", models.TaskList, status=status, limit=limit))

    def why(self, task: str) -> models.TaskExplanation:
        """The reason for the state of a task."""
        return self._client._answer(self._paths.task("GET", task, "/explain", models.TaskExplanation))

    def when(self, task: str) -> models.StartAnswer:
        """When a waiting task starts, as a distribution, and why that may be off; of a running task, when it has started."""
        return self._client._answer(self._paths.task("GET", task, "/eta", models.StartAnswer))

    def when_submitted(
        self,
        *,
        organization: str,
        task_class: Literal["hp", "spot"] = "spot",
        gpus_per_pod: float = 1.0,
        pods: int = 1,
        guarantee_hours: int | None = None,
        cpu_milli: int = 0,
        memory_mib: int = 0,
        affinity: models.AffinityBody | None = None,
    ) -> models.StartAnswer:
        """When a task would start, were it submitted now. Nothing is submitted."""
        question = models.StartQuestion(
            cluster=self.cluster,
            gpu_model=self.gpu_model,
            organization=organization,
            class_=task_class,
            gpus_per_pod=gpus_per_pod,
            pods=pods,
            guarantee_hours=guarantee_hours,
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            affinity=affinity,
        )
        return self._client._answer(with_body("POST", "/v1/tasks/eta", models.StartAnswer, question))

    def prices(
        self,
        *,
        organization: str,
        gpus_per_pod: float = 1.0,
        pods: int = 1,
        cpu_milli: int = 0,
        memory_mib: int = 0,
        runs_s: int | None = None,
        ends_by: datetime | str | None = None,
        probability: float | None = None,
    ) -> models.PriceList:
        """The wait for each class and guarantee; with `runs_s` the end, with `ends_by` what ends in time. Nothing is submitted."""
        question = models.PriceQuestion(
            cluster=self.cluster,
            gpu_model=self.gpu_model,
            organization=organization,
            gpus_per_pod=gpus_per_pod,
            pods=pods,
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            runs_s=runs_s,
            ends_by=None if ends_by is None else text_of(ends_by),
            probability=probability,
        )
        return self._client._answer(with_body("POST", "/v1/tasks/prices", models.PriceList, question))

    def cancel(self, task: str) -> models.TaskAnswer:
        """Takes a task back, waiting or running."""
        return self._client._answer(self._paths.task("DELETE", task, "", models.TaskAnswer))

    def finish(self, task: str) -> models.TaskAnswer:
        """Reports the end of a running task."""
        return self._client._answer(self._paths.task("POST", task, "/finish", models.TaskAnswer))

    def checkpoint(self, task: str) -> models.TaskAnswer:
        """Reports a checkpoint: work before it is not lost by an eviction."""
        return self._client._answer(self._paths.task("POST", task, "/checkpoint", models.TaskAnswer))

    def state(self) -> models.PoolStateBody:
        """The state that an external scheduler has reported."""
        return self._client._answer(Call("GET", f"/v1/pools/{self._paths.id}/state", models.PoolStateBody))

    def report_state(
        self,
        *,
        capacity_gpus: float,
        idle_gpus: float,
        spot_gpus_by_hours: Mapping[int, float],
        longest_quota_wait_s: int = 0,
        as_of: datetime | str | None = None,
    ) -> bool:
        """Reports the pool as an external scheduler sees it; false where the service knows a newer state."""
        call = self._paths.state(capacity_gpus, idle_gpus, spot_gpus_by_hours, longest_quota_wait_s, as_of)
        return (self._client._answer(call)).taken

    def settings(self) -> models.SettingsBody:
        """The settings of the pool."""
        return self._client._answer(Call("GET", f"/v1/pools/{self._paths.id}/settings", models.SettingsBody))

    def put_settings(self, settings: models.SettingsBody) -> models.SettingsBody:
        """Changes the settings; `version` names the one that is changed, so that two writers notice each other."""
        path = f"/v1/pools/{self._paths.id}/settings"
        return self._client._answer(with_body("PUT", path, models.SettingsBody, settings))

    def nodes(self, hours: int | None = None) -> models.NodeViews:
        """The nodes with their allocated GPUs, now and hour by hour."""
        path = f"/v1/pools/{self._paths.id}/nodes"
        return self._client._answer(Call("GET", path, models.NodeViews, some(hours=hours)))

    def shares(self) -> models.ShareList:
        """The organizations under fair shares of spot: the one that is served next first."""
        return self._client._answer(Call("GET", f"/v1/pools/{self._paths.id}/shares", models.ShareList))

    def reserve(
        self,
        *,
        organization: str,
        gpus: float,
        begin: datetime | str,
        end: datetime | str,
        days: Sequence[models.WeekdayBody] | None = None,
        until: datetime | str | None = None,
        dry_run: bool = False,
    ) -> models.ReservationBody:
        """Sells a window ahead: from `begin` on and before `end` the GPUs are for the HP tasks of one organization. With `days` it
        repeats each week at the local time of the cluster, until `until`.

        The same reservation again is answered as it is stored. With `dry_run` the windows have their probability, and nothing is stored.
        """
        call = _calls.reservation(
            self.cluster,
            self.gpu_model,
            organization=organization,
            gpus=gpus,
            begin=begin,
            end=end,
            days=days,
            until=until,
            dry_run=dry_run,
        )
        return self._client._answer(call)

    def reservations(self, past: bool = False) -> models.ReservationList:
        """The reservations of the pool by number, each with its next windows; `past` ones, too."""
        return self._client._answer(self._paths.reservations(past))

    def reservations_ics(self, past: bool = False) -> str:
        """The windows of the next 12 weeks as iCalendar (RFC 5545); `past` ones, too."""
        return self._client._answer(self._paths.reservations_ics(past))

    def quotas(self, hours: int) -> Iterator[models.QuotaAnswer]:
        """The quota, and each new one as soon as there is one. The service holds a request whose answer has not changed.

        While the service is away it waits and goes on; `headroom.is_valid` says whether the last quota still stands.
        """
        etag, pauses = None, pauses_s()
        while True:
            try:
                response = self._client._send(self._paths.next_quota(hours, etag))
                if response.status_code != 304:
                    quota = _calls.read(self._paths.quota(hours), response)
                    etag, pauses = response.headers.get("etag"), pauses_s()
                    yield quota
                    continue
                # A service that stops answers at once.
                pauses, pause_s = pauses_s(), 1.0
            except Unavailable as fault:
                pause_s = next(pauses) if fault.retry_after_s is None else fault.retry_after_s
            time.sleep(pause_s)

    def events(self, after: str | None = None) -> Iterator[models.EventBody]:
        """What happens to tasks, from now on, or after the event with the id `after`. It goes on after the last one when the
        connection breaks off."""
        last, pauses = after, pauses_s()
        while True:
            try:
                for event in self._events(last):
                    last, pauses = event.id, pauses_s()
                    yield event
                pause_s = next(pauses)
            except Unavailable as fault:
                pause_s = next(pauses) if fault.retry_after_s is None else fault.retry_after_s
            time.sleep(pause_s)

    def _events(self, last: str | None) -> Iterator[models.EventBody]:
        """The events of one connection."""
        options, lines = self._client._options, Lines()
        headers = options.headers({} if last is None else {"last-event-id": last})
        timeout = httpx.Timeout(options.limit_s, read=_calls.QUIET_S)
        try:
            with self._client._http.stream(
                "GET", "/v1/events", params=self._paths.of_pool, headers=headers, timeout=timeout
            ) as response:
                if not response.is_success:
                    response.read()
                    raise _calls.fault_of(response)
                _calls.check_stream(response)
                for text in response.iter_text():
                    for data in lines.add(text):
                        yield _calls.event(response, data)
        except httpx.RequestError as fault:
            raise _calls.no_answer(options.api, fault) from fault

    def follow(self, task: str, every_s: float = 5.0) -> Iterator[models.TaskAnswer]:
        """A task whenever it changes, until it has ended."""
        last: models.TaskAnswer | None = None
        while True:
            now = self.task(task)
            # Its expected start is forecast again each minute.
            state = replace(now, start=None)
            if state != last:
                last = state
                yield now
            if now.status in ("finished", "deleted"):
                return
            time.sleep(every_s)
