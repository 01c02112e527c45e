"""Requests as values: what both clients send, and the types of the answers."""

from __future__ import annotations

import json
import random
import secrets
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import httpx

from . import models
from ._codec import Malformed, decode, encode
from ._errors import Foreign, HeadroomError, Refused, Unavailable

T = TypeVar("T")

#: Statuses that pass by themselves. A full database (507) is left to people.
TRANSIENT = frozenset({429, 500, 502, 503, 504})
#: Seconds that the service holds a request whose answer is still the one that was seen.
HELD_S = 30
#: Seconds for which a stream of events may be silent: the service sends a comment every 15 s.
QUIET_S = 45.0
LONGEST_PAUSE_S = 30.0
#: Of a pause that an answer names: a proxy may name years, and a number that no clock holds.
LONGEST_NAMED_S = 600.0
#: The same: at `Retry-After: 0` a client would ask without a pause.
SHORTEST_NAMED_S = 1.0

Status = Literal["waiting", "running"]


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and the type of its answer."""

    method: str
    path: str
    kind: type[T]
    query: Mapping[str, str | int | float] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Seconds that the service holds the request.
    held_s: float = 0.0
    #: Media type of an answer that is text; without one it is JSON.
    media_type: str | None = None


def quoted(name: str) -> str:
    """A name within a segment of a path."""
    return quote(name, safe=":")


def part(id: str | int) -> str:  # noqa: A002: the name of the field
    """An id as a whole segment of a path. Of a dot or two the address of another request would be made, as of nothing."""
    name = str(id)
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not an id: name the task, node or reservation")
    return quoted(name)


def some(**values: str | int | float | None) -> dict[str, str | int | float]:
    """The values that are there."""
    return {key: value for key, value in values.items() if value is not None}


def text_of(moment: datetime | str | None) -> str:
    """RFC 3339, to the second; now where there is none."""
    if isinstance(moment, str):
        return moment
    moment = moment or datetime.now(timezone.utc)
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone: use datetime.now(timezone.utc)")
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_valid(quota: models.QuotaAnswer, now: datetime | None = None) -> bool:
    """Whether something new may be admitted on a quota: not after `valid_until`."""
    until = datetime.fromisoformat(quota.valid_until.replace("Z", "+00:00"))
    return (now or datetime.now(timezone.utc)) < until


def pauses_s() -> Iterator[float]:
    """1, 2, 4 and at most 30 seconds, each a little shorter by chance, so that clients do not all come back at once."""
    pause_s = 1.0
    while True:
        yield pause_s * random.uniform(0.7, 1.0)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def task_of(
    cluster: str,
    gpu_model: str,
    *,
    organization: str,
    id: str | None,  # noqa: A002: the name of the field
    task_class: Literal["hp", "spot"],
    gpus_per_pod: float,
    pods: int,
    guarantee_hours: int | None,
    cpu_milli: int,
    memory_mib: int,
    affinity: models.AffinityBody | None,
    elastic: models.ElasticBody | None,
) -> models.TaskBody:
    """A task; its id, drawn where none is given, makes a repeated submission one."""
    return models.TaskBody(
        cluster=cluster,
        gpu_model=gpu_model,
        id=id or f"task-{secrets.token_hex(10)}",
        organization=organization,
        class_=task_class,
        gpus_per_pod=gpus_per_pod,
        pods=pods,
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
        guarantee_hours=guarantee_hours,
        affinity=affinity,
        elastic=elastic,
    )


def with_body(method: str, path: str, kind: type[T], body: Any) -> Call[T]:
    return Call(method, path, kind, body=encode(body))


class Paths:
    """The requests of one pool."""

    def __init__(self, cluster: str, gpu_model: str) -> None:
        self.of_pool = {"cluster": cluster, "gpu_model": gpu_model}
        self.id = f"{quoted(cluster)}:{quoted(gpu_model)}"

    def get(self, path: str, kind: type[T], **query: str | int | float | None) -> Call[T]:
        return Call("GET", path, kind, {**self.of_pool, **some(**query)})

    def task(self, method: str, task: str, what: str, kind: type[T]) -> Call[T]:
        return Call(method, f"/v1/tasks/{part(task)}{what}", kind, dict(self.of_pool))

    def quota(self, hours: int) -> Call[models.QuotaAnswer]:
        return self.get("/v1/quota", models.QuotaAnswer, hours=hours)

    def next_quota(self, hours: int, etag: str | None) -> Call[models.QuotaAnswer]:
        """The quota; with a tag, the next one that differs from it."""
        call = self.quota(hours)
        if etag is None:
            return call
        held = {**call.query, "wait": f"{HELD_S}s"}
        return replace(call, query=held, headers={"if-none-match": etag}, held_s=HELD_S)

    def reservations(self, past: bool) -> Call[models.ReservationList]:
        return self.get("/v1/reservations", models.ReservationList, past="true" if past else None)

    def reservations_ics(self, past: bool) -> Call[str]:
        call = self.get("/v1/reservations.ics", str, past="true" if past else None)
        return replace(call, media_type="text/calendar")

    def state(
        self,
        capacity_gpus: float,
        idle_gpus: float,
        spot_gpus_by_hours: Mapping[int, float],
        longest_quota_wait_s: int,
        as_of: datetime | str | None,
    ) -> Call[models.PoolStateReceipt]:
        body = models.PoolStateBody(
            capacity_gpus=capacity_gpus,
            idle_gpus=idle_gpus,
            spot_gpus_by_guarantee_hours={str(hours): gpus for hours, gpus in spot_gpus_by_hours.items()},
            longest_quota_wait_s=longest_quota_wait_s,
            as_of=text_of(as_of),
        )
        return with_body("PUT", f"/v1/pools/{self.id}/state", models.PoolStateReceipt, body)


def reservation(
    cluster: str,
    gpu_model: str,
    *,
    organization: str,
    gpus: float,
    begin: datetime | str,
    end: datetime | str,
    days: Sequence[models.WeekdayBody] | None,
    until: datetime | str | None,
    dry_run: bool,
) -> Call[models.ReservationBody]:
    """A window, or one on each of these days; without days it does not repeat."""
    if days is not None and not days:
        raise ValueError("days is empty: name the days on which the window repeats, or leave days out for one window")
    if until is not None and not days:
        raise ValueError("until ends a repetition: name the days on which the window repeats")
    repeats = models.RepeatsBody(days=list(days), until=None if until is None else text_of(until)) if days else None
    body = models.ReservationRequest(
        cluster=cluster,
        gpu_model=gpu_model,
        organization=organization,
        gpus=gpus,
        from_=text_of(begin),
        to=text_of(end),
        repeats=repeats,
    )
    call = with_body("POST", "/v1/reservations", models.ReservationBody, body)
    return replace(call, query={"dry_run": "true"}) if dry_run else call


def outcomes(batch: Sequence[models.OutcomeBody]) -> Call[models.OutcomeReceipt]:
    return with_body("POST", "/v1/outcomes", models.OutcomeReceipt, models.OutcomeBatch(outcomes=list(batch)))


def usage(rows: Sequence[models.UsageRowBody]) -> Call[models.UsageReceipt]:
    return with_body("POST", "/v1/usage", models.UsageReceipt, models.UsageBatch(rows=list(rows)))


def statement(
    month: str | None, by: Literal["month", "day"], cluster: str | None, gpu_model: str | None, organization: str | None
) -> Call[models.StatementAnswer]:
    query = some(month=month, by=by, cluster=cluster, gpu_model=gpu_model, organization=organization)
    return Call("GET", "/v1/statement", models.StatementAnswer, query)


def read(call: Call[T], response: httpx.Response) -> T:
    """The answer to a call; a refusal is an exception."""
    if not response.is_success:
        raise fault_of(response)
    try:
        return decode(call.kind, body_of(call, response))
    except (Malformed, ValueError, RecursionError) as fault:
        raise foreign(response, fault) from fault


def body_of(call: Call[T], response: httpx.Response) -> Any:
    """The body of a success: JSON, text where the call names its media type, or none."""
    if response.status_code == 204:
        return None
    if call.media_type is None:
        return response.json()
    found = response.headers.get("content-type", "nothing")
    if not found.startswith(call.media_type):
        raise Malformed(f"expected {call.media_type}, found {found}")
    return response.text


def foreign(response: httpx.Response, fault: object) -> Foreign:
    return Foreign(f"{response.url} does not answer as quota-service: {fault}; check the URL")


def event(response: httpx.Response, data: str) -> models.EventBody:
    """The event in the data of a stream."""
    try:
        return decode(models.EventBody, json.loads(data))
    except (Malformed, ValueError, RecursionError) as fault:
        raise foreign(response, fault) from fault


def check_stream(response: httpx.Response) -> None:
    """A page in place of a stream ends, and would be asked for again without an end."""
    kind = response.headers.get("content-type", "nothing")
    if response.is_success and not kind.startswith("text/event-stream"):
        raise foreign(response, f"expected text/event-stream, found {kind}")


def _wrong(fault: BaseException) -> str | None:
    """The reason for which no later try brings an answer, with the remedy; None where one may."""
    # The library wraps the fault of the connection.
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its certificate is not trusted: name the file of its authority with ca_file, or correct the name in the URL"
        if isinstance(cause, ssl.SSLError) and cause.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return "it speaks no TLS: is it http://?"
        if isinstance(cause, ssl.SSLError) and "CERTIFICATE_REQUIRED" in (cause.reason or ""):
            return "it asks clients for a certificate (tls_client_ca_file), and this client shows none"
        cause = cause.__cause__ or cause.__context__
    if isinstance(fault, httpx.RemoteProtocolError) and str(fault).startswith(("illegal status line", "illegal request line")):
        return "it speaks no HTTP: is it https://?"
    return None


def no_answer(api: str, fault: httpx.RequestError) -> HeadroomError:
    """A request that brought no answer that can be read."""
    wrong = _wrong(fault)
    if wrong is not None:
        return Foreign(f"{api} does not answer as quota-service: {wrong} ({fault})")
    if isinstance(fault, httpx.TransportError):
        return Unavailable(f"{api} does not answer: {fault or type(fault).__name__}")
    return Foreign(f"{api} does not answer as quota-service: {fault or type(fault).__name__}; check the URL")


def fault_of(response: httpx.Response) -> HeadroomError:
    """The failure that a status other than success is."""
    status = response.status_code
    try:
        problem = decode(models.Problem, response.json())
    except (ValueError, RecursionError):
        # A proxy in between answers by itself.
        problem = models.Problem(
            type="about:blank", title=response.reason_phrase, status=status, detail=response.text[:200], code=""
        )
    if response.is_redirect:
        return foreign(response, f"{status} leads to {response.headers.get('location', 'no address')}")
    if status not in TRANSIENT:
        return Refused(status, problem)
    after = response.headers.get("retry-after", "")
    detail = f"{response.url} answers {status}: {problem.detail}"
    is_number = after.isascii() and after.isdigit()
    after_s = min(max(float(after), SHORTEST_NAMED_S), LONGEST_NAMED_S) if is_number else None
    return Unavailable(detail, after_s, problem)


class Lines:
    """The data of server-sent events, however the bytes arrive. The service writes the data of an event as one line."""

    def __init__(self) -> None:
        self.rest = ""

    def add(self, text: str) -> Iterator[str]:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if line.startswith("data:"):
                yield line.removeprefix("data:").strip()
