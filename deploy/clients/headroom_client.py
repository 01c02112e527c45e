#!/usr/bin/env python3
"""A client of Headroom in one file, with Python's standard library alone (3.9 or newer).

Copy it into a scheduler, or try it:

    headroom_client.py --cluster demo --gpu-model A100 poll --hours 4
    headroom_client.py --cluster demo --gpu-model A100 state --capacity 128 --idle 40 --spot 4=16
    headroom_client.py --cluster demo --gpu-model A100 outcome --event-id run-17-1 --hours 4 --kind kept
    headroom_client.py --cluster demo --gpu-model A100 task --id sweep-1 --organization vision --pods 2 --hours 4

What it does that a scheduler should do, too:

* It polls with the tag of what it has seen, and waits for another answer (`If-None-Match`, `wait=30s`).
* After `valid_until` it answers no quota: nothing new may be admitted on an answer that is too old.
* Every write may be repeated: a state is the newest one, an outcome counts once by its event id, a task by its id. So a write
  without an answer is sent again, after `Retry-After` where the service says so.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from email.message import Message
from pathlib import Path
from typing import Any

#: Seconds for a request beside what it waits by itself.
REQUEST_LIMIT_S = 15.0
#: The longest pause between two tries.
LONGEST_PAUSE_S = 30.0
#: Of a pause that an answer names: a proxy may name years.
LONGEST_NAMED_S = 600.0
#: The same: at `Retry-After: 0` a client would ask without a pause.
SHORTEST_NAMED_S = 1.0
#: How long a poll waits for another answer; the service cuts it to a minute.
WAIT_S = 30


class Refused(Exception):
    """The service does not do it, and will not if it is asked again."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        fields = "; ".join(f"{one['pointer']}: {one['detail']}" for one in problem.get("errors", []))
        known = f"; known: {', '.join(problem['known'])}" if problem.get("known") else ""
        super().__init__(f"{status} {problem.get('code', '')}: {problem.get('detail', '')} {fields}".strip() + known)
        self.status = status
        self.code: str = problem.get("code", "")


class Unavailable(Exception):
    """The service is away or busy: the same may be asked again."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class Quota:
    """What spot tasks with a guarantee of at least so many hours may hold."""

    hours: int
    quota_gpus: float
    used_gpus: float
    available_gpus: float
    stage: str
    valid_until: datetime
    #: The answer as it came: reasons, bound, eta and all.
    body: Mapping[str, Any]

    @staticmethod
    def of(body: Mapping[str, Any]) -> Quota:
        return Quota(
            hours=body["hours"],
            quota_gpus=body["quota_gpus"],
            used_gpus=body["used_gpus"],
            available_gpus=body["available_gpus"],
            stage=body["stage"],
            valid_until=time_of(body["valid_until"]),
            body=body,
        )


@dataclass(frozen=True)
class Outcome:
    """How one guarantee ended. `event_id` is the reporter's own, and the same whenever it is sent."""

    event_id: str
    guarantee_hours: int
    #: kept or broken (by high-priority demand); node_failure, drain or user_deleted, which do not move eta.
    kind: str
    ended_at: datetime
    task: str | None = None
    node: str | None = None


def time_of(text: str) -> datetime:
    """RFC 3339; Python 3.9 does not read the Z."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def text_of(moment: datetime) -> str:
    """Seconds are what the service counts in."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Client:
    """One pool of a service. Not for several threads at once."""

    def __init__(
        self,
        api: str,
        cluster: str,
        gpu_model: str,
        token_file: Path | None = None,
        ca_file: Path | None = None,
    ) -> None:
        self.api = api.rstrip("/")
        self.cluster, self.gpu_model = cluster, gpu_model
        self.token_file = token_file
        self.tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file else None
        self._seen: dict[int, tuple[str, Quota]] = {}

    # The quota

    def quota(self, hours: int, wait_s: int = 0) -> Quota:
        """The quota now; with `wait_s` the next one that differs from the one seen last, or that one again."""
        query: dict[str, Any] = {"hours": hours}
        headers = {}
        seen = self._seen.get(hours)
        if seen:
            headers["If-None-Match"] = seen[0]
            if wait_s:
                query["wait"] = f"{wait_s}s"
        status, body, answered = self._ask("GET", "/quota", query, headers=headers, wait_s=wait_s)
        if status == 304 and seen:
            return seen[1]
        quota = Quota.of(body)
        self._seen[hours] = (answered.get("ETag", ""), quota)
        return quota

    def quotas(self, hours: int) -> Iterator[Quota | None]:
        """Each new quota as soon as there is one, for ever. `None` once the last one is too old to admit anything on."""
        last: Quota | None = None
        reported_none = False
        pauses = pauses_s()
        while True:
            try:
                quota = self.quota(hours, WAIT_S)
            except Unavailable as fault:
                if last and datetime.now(timezone.utc) > last.valid_until and not reported_none:
                    reported_none = True
                    yield None
                pause_s = fault.retry_after_s or next(pauses)
                print(f"{fault}; again in {pause_s:.0f} s", file=sys.stderr)
                time.sleep(pause_s)
                continue
            pauses = pauses_s()
            if reported_none or last is None or quota.body != last.body:
                last, reported_none = quota, False
                yield quota
            else:
                # A service that stops answers at once.
                time.sleep(1)

    # Reports of a scheduler that places by itself

    def report_state(
        self,
        capacity_gpus: float,
        idle_gpus: float,
        spot_gpus_by_hours: Mapping[int, float],
        longest_quota_wait_s: int = 0,
        as_of: datetime | None = None,
    ) -> bool:
        """What the pool looks like; false where the service knows a newer state."""
        body = {
            "capacity_gpus": capacity_gpus,
            "idle_gpus": idle_gpus,
            "spot_gpus_by_guarantee_hours": {str(hours): gpus for hours, gpus in spot_gpus_by_hours.items()},
            "longest_quota_wait_s": longest_quota_wait_s,
            "as_of": text_of(as_of or datetime.now(timezone.utc)),
        }
        pool = urllib.parse.quote(f"{self.cluster}:{self.gpu_model}", safe=":")
        return bool(self._write("PUT", f"/v1/pools/{pool}/state", body)["taken"])

    def report_outcomes(self, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """The fate of each event: recorded, repeated (it was there), or conflicting (it was there, with other contents)."""
        rows = []
        for outcome in outcomes:
            row: dict[str, Any] = {
                "event_id": outcome.event_id,
                "cluster": self.cluster,
                "gpu_model": self.gpu_model,
                "guarantee_hours": outcome.guarantee_hours,
                "kind": outcome.kind,
                "ended_at": text_of(outcome.ended_at),
            }
            row.update({name: value for name, value in (("task", outcome.task), ("node", outcome.node)) if value})
            rows.append(row)
        receipt = self._write("POST", "/v1/outcomes", {"outcomes": rows})
        return {one["event_id"]: one["result"] for one in receipt["outcomes"]}

    # Tasks that the service places

    def submit(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Its decision. The same task again is answered as it stands."""
        body = {"cluster": self.cluster, "gpu_model": self.gpu_model, **task}
        return self._write("POST", "/v1/tasks", body)

    def task(self, task_id: str) -> dict[str, Any]:
        task: dict[str, Any] = self._ask("GET", f"/v1/tasks/{quoted(task_id)}", {})[1]
        return task

    def finish(self, task_id: str) -> dict[str, Any]:
        return self._write("POST", f"/v1/tasks/{quoted(task_id)}/finish", None, self._of_pool())

    def follow(self, task_id: str, every_s: float = 5.0) -> Iterator[dict[str, Any]]:
        """The task whenever it changes, until it has ended. `/v1/events` tells the same without asking."""
        last: dict[str, Any] | None = None
        pauses = pauses_s()
        while True:
            try:
                task = self.task(task_id)
            except Unavailable as fault:
                # What runs goes on: nobody else gets its GPUs meanwhile.
                pause_s = fault.retry_after_s or next(pauses)
                print(f"{fault}; again in {pause_s:.0f} s", file=sys.stderr)
                time.sleep(pause_s)
                continue
            pauses = pauses_s()
            if task != last:
                last = task
                yield task
                if task["status"] in ("finished", "deleted"):
                    return
            time.sleep(every_s)

    # How it asks

    def _of_pool(self) -> dict[str, Any]:
        return {"cluster": self.cluster, "gpu_model": self.gpu_model}

    def _write(self, method: str, path: str, body: Any, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Sends until there is an answer: every write of this file may be repeated."""
        for pause_s in pauses_s():
            try:
                answer: dict[str, Any] = self._ask(method, path, query or {}, body=body, of_pool=False)[1]
                return answer
            except Unavailable as fault:
                pause_s = fault.retry_after_s or pause_s
                print(f"{fault}; again in {pause_s:.0f} s", file=sys.stderr)
                time.sleep(pause_s)
        raise AssertionError("pauses have no end")

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        wait_s: int = 0,
        of_pool: bool = True,
    ) -> tuple[int, Any, Message]:
        query = {**self._of_pool(), **query} if of_pool else dict(query)
        url = f"{self.api}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        request = urllib.request.Request(url, method=method, headers=dict(headers or {}))
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if self.token_file:
            # Read each time: it may have been replaced.
            request.add_header("Authorization", f"Bearer {self.token_file.read_text().strip()}")
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_LIMIT_S + wait_s, context=self.tls) as answer:
                return answer.status, json.loads(answer.read() or b"null"), answer.headers
        except urllib.error.HTTPError as answer:
            with answer:
                return self._refused(answer)
        # The connection was refused, cut or too slow, or what came over it was cut.
        except (OSError, ValueError, http.client.HTTPException) as fault:
            raise Unavailable(f"{self.api} does not answer: {fault}") from fault

    @staticmethod
    def _refused(answer: urllib.error.HTTPError) -> tuple[int, Any, Message]:
        if answer.code == 304:
            return 304, None, answer.headers
        text = answer.read().decode(errors="replace")
        try:
            problem = json.loads(text)
        except ValueError:
            # A proxy in between speaks for itself.
            problem = None
        if not isinstance(problem, dict):
            problem = {"detail": text[:200]}
        if answer.code == 429 or answer.code >= 500:
            after = answer.headers.get("Retry-After", "")
            is_number = after.isascii() and after.isdigit()
            after_s = min(max(float(after), SHORTEST_NAMED_S), LONGEST_NAMED_S) if is_number else None
            raise Unavailable(f"the service answers {answer.code}: {problem.get('detail', '')}", after_s)
        raise Refused(answer.code, problem)


def quoted(name: str) -> str:
    """An id as a whole segment of a path. Of a dot or two the address of another request would be made, as of nothing."""
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not an id: name the task")
    return urllib.parse.quote(name, safe="")


def pauses_s() -> Iterator[float]:
    """1, 2, 4 and at most 30 seconds, each a little shorter by chance, so that clients do not all come back at once."""
    pause_s = 1.0
    while True:
        yield pause_s * random.uniform(0.7, 1.0)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def spot(text: str) -> tuple[int, float]:
    hours, _, gpus = text.partition("=")
    return int(hours), float(gpus)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ask a Headroom service, and report to it.")
    parser.add_argument("--api", default="http://127.0.0.1:8080")
    parser.add_argument("--token-file", type=Path, help="file with the token, read at each request")
    parser.add_argument("--ca-file", type=Path, help="certificates (PEM) that the service's is checked against")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--gpu-model", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    poll = commands.add_parser("poll", help="print each new quota as a line of JSON")
    poll.add_argument("--hours", type=int, required=True)
    poll.add_argument("--count", type=int, default=0, help="end after so many")
    state = commands.add_parser("state", help="report the state of the pool")
    state.add_argument("--capacity", type=float, required=True)
    state.add_argument("--idle", type=float, required=True)
    state.add_argument("--spot", type=spot, action="append", default=[], metavar="HOURS=GPUS")
    state.add_argument("--longest-quota-wait-s", type=int, default=0)
    outcome = commands.add_parser("outcome", help="report how a guarantee ended")
    outcome.add_argument("--event-id", required=True)
    outcome.add_argument("--hours", type=int, required=True)
    outcome.add_argument("--kind", default="kept")
    outcome.add_argument("--ended-at", type=time_of, default=None)
    task = commands.add_parser("task", help="submit a task, and print it whenever it changes")
    task.add_argument("--id", required=True)
    task.add_argument("--organization", required=True)
    task.add_argument("--class", dest="task_class", default="spot", choices=("spot", "hp"))
    task.add_argument("--gpus-per-pod", type=float, default=1.0)
    task.add_argument("--pods", type=int, default=1)
    task.add_argument("--hours", type=int, help="how long a spot task is to be promised to run; without, it runs at will")
    task.add_argument("--finish", action="store_true", help="report it as finished as soon as it runs")
    return parser.parse_args()


def show(body: Any) -> None:
    print(json.dumps(body), flush=True)


def poll(client: Client, hours: int, count: int) -> None:
    for number, quota in enumerate(client.quotas(hours), start=1):
        show(quota.body if quota else {"hours": hours, "available_gpus": 0, "stage": "unknown"})
        if number == count:
            return


def run_task(client: Client, asked: argparse.Namespace) -> None:
    task = {"id": asked.id, "organization": asked.organization, "class": asked.task_class}
    task.update({"gpus_per_pod": asked.gpus_per_pod, "pods": asked.pods})
    if asked.hours:
        task["guarantee_hours"] = asked.hours
    client.submit(task)
    for seen in client.follow(asked.id, every_s=1.0):
        show({"id": seen["id"], "status": seen["status"], "detail": seen["detail"]})
        if asked.finish and seen["status"] == "running":
            client.finish(asked.id)


def main() -> int:
    asked = arguments()
    client = Client(asked.api, asked.cluster, asked.gpu_model, asked.token_file, asked.ca_file)
    try:
        if asked.command == "poll":
            poll(client, asked.hours, asked.count)
        elif asked.command == "state":
            show({"taken": client.report_state(asked.capacity, asked.idle, dict(asked.spot), asked.longest_quota_wait_s)})
        elif asked.command == "outcome":
            ended_at = asked.ended_at or datetime.now(timezone.utc)
            show(client.report_outcomes([Outcome(asked.event_id, asked.hours, asked.kind, ended_at)]))
        else:
            run_task(client, asked)
    except (Refused, OSError) as fault:
        # An OSError is one of the token file: those of the network are tried again.
        print(fault, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
