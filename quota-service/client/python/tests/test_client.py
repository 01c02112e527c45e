"""The client without a service: retries, decoding, streams, and both clients side by side.

    python -m unittest discover --start-directory tests
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import pickle
import ssl
import tempfile
import unittest
import unittest.mock
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx

import headroom
from headroom import AsyncHeadroom, AsyncPool, Headroom, Pool, models
from headroom._codec import Malformed, decode, encode

QUOTA = {
    "cluster": "earth",
    "gpu_model": "A100",
    "hours": 4,
    "guarantee_rate": 0.9,
    "quota_gpus": 20,
    "used_gpus": 0.0,
    "available_gpus": 3.5,
    "inventory_gpus": 20.0,
    "capacity_gpus": 40.0,
    "demand_bound_gpus": 20.0,
    "eta": 1.0,
    "idle_gpus": 20.0,
    "aggregation": "pooled",
    "run_id": None,
    "computed_at": "2026-01-05T10:00:00Z",
    "valid_until": "2026-01-05T10:10:00Z",
    "stage": "fresh",
    "stale": False,
    "reasons": [{"code": "held_by_idle", "detail": "idle GPUs are few"}],
}


def problem(status: int, code: str, **more: Any) -> dict[str, Any]:
    return {"type": f"/problems/{code}", "title": code, "status": status, "detail": "what to do", "code": code, **more}


class Served:
    """Responses in their order, and the requests that they answered."""

    def __init__(self, *responses: httpx.Response | Exception) -> None:
        self.responses: Iterator[httpx.Response | Exception] = iter(responses)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = next(self.responses)
        if isinstance(response, Exception):
            raise response
        return response

    def client(self, **options: Any) -> Headroom:
        return Headroom("http://headroom.test", transport=httpx.MockTransport(self), **options)

    def asynchronous(self, **options: Any) -> AsyncHeadroom:
        return AsyncHeadroom("http://headroom.test", transport=httpx.MockTransport(self), **options)


def busy(after: str = "0") -> httpx.Response:
    return httpx.Response(503, json=problem(503, "overloaded"), headers={"retry-after": after})


class Retries(unittest.TestCase):
    def test_a_patient_client_tries_again_after_the_time_that_the_service_names(self) -> None:
        served, paused = Served(busy("7"), busy("9"), httpx.Response(200, json=QUOTA)), list[float]()
        with unittest.mock.patch("headroom._sync.time.sleep", paused.append):
            quota = served.client(patience_s=60).quota("earth", "A100", hours=4)
        self.assertEqual(paused, [7.0, 9.0])
        self.assertEqual((quota.available_gpus, quota.quota_gpus, quota.reasons[0].code), (3.5, 20.0, "held_by_idle"))
        self.assertEqual(str(served.requests[0].url), "http://headroom.test/v1/quota?cluster=earth&gpu_model=A100&hours=4")
        self.assertEqual(len(served.requests), 3)

    def test_an_impatient_client_raises_what_the_service_answers(self) -> None:
        with self.assertRaises(headroom.Unavailable) as raised:
            Served(busy("7")).client(patience_s=0).pools()
        self.assertEqual(raised.exception.retry_after_s, 7.0)
        assert raised.exception.problem is not None
        self.assertEqual(raised.exception.problem.code, "overloaded")
        with self.assertRaisesRegex(headroom.Unavailable, "does not answer: no route"):
            Served(httpx.ConnectError("no route")).client(patience_s=0).pools()

    def test_a_refusal_is_not_sent_again_and_names_the_fields(self) -> None:
        errors = [{"pointer": "/pods", "detail": "a task needs at least one pod"}]
        served = Served(httpx.Response(400, json=problem(400, "bad-body", errors=errors)))
        with self.assertRaisesRegex(headroom.Refused, "400 bad-body: what to do; /pods: a task needs") as raised:
            served.client(patience_s=60).pool("earth", "A100").submit(organization="vision", pods=0)
        self.assertEqual((raised.exception.code, len(served.requests)), ("bad-body", 1))

    def test_a_refusal_of_a_name_lists_the_known_ones(self) -> None:
        served = Served(httpx.Response(404, json=problem(404, "unknown-pool", known=["earth:A100", "earth:V100"])))
        with self.assertRaisesRegex(headroom.Refused, "404 unknown-pool: what to do; known: earth:A100, earth:V100$"):
            served.client(patience_s=0).quota("earth", "B100", hours=4)

    def test_errors_and_answers_go_from_process_to_process(self) -> None:
        refusal = headroom.Refused(400, decode(models.Problem, problem(400, "bad-body")))
        again = pickle.loads(pickle.dumps(refusal))
        self.assertEqual((again.status, again.code, str(again)), (400, "bad-body", str(refusal)))
        away = pickle.loads(pickle.dumps(headroom.Unavailable("busy", 7.0)))
        self.assertEqual((away.detail, away.retry_after_s), ("busy", 7.0))
        quota = decode(models.QuotaAnswer, QUOTA)
        self.assertEqual(pickle.loads(pickle.dumps(quota)), quota)

    def test_a_submission_that_is_sent_again_has_the_same_drawn_id(self) -> None:
        served = Served(httpx.ReadTimeout("late"), busy(), httpx.Response(404, json=problem(404, "no-nodes")))
        with self.assertRaises(headroom.Refused), unittest.mock.patch("headroom._sync.time.sleep"):
            served.client(patience_s=60).pool("earth", "A100").submit(organization="vision", gpus_per_pod=0.5)
        bodies = [json.loads(request.content) for request in served.requests]
        self.assertEqual(bodies[0], bodies[1])
        self.assertEqual(bodies[0], bodies[2])
        self.assertRegex(bodies[0]["id"], "^task-[0-9a-f]{20}$")
        self.assertEqual((bodies[0]["class"], bodies[0]["gpus_per_pod"]), ("spot", 0.5))
        self.assertNotIn("guarantee_hours", bodies[0])

    def test_something_else_than_the_service_is_named(self) -> None:
        with self.assertRaisesRegex(headroom.Foreign, "does not answer as quota-service"):
            Served(httpx.Response(200, text="<html>")).client().pools()
        with self.assertRaisesRegex(headroom.Foreign, "/aggregation is missing"):
            Served(httpx.Response(200, json={"cluster": "earth"})).client().quota("earth", "A100", hours=4)
        with self.assertRaisesRegex(headroom.Refused, "403 : a proxy"):
            Served(httpx.Response(403, text="a proxy")).client().pools()

    def test_a_connection_that_no_later_try_brings_about_is_named_at_once(self) -> None:
        untrusted, no_tls = httpx.ConnectError("self-signed"), httpx.ConnectError("wrong version number")
        untrusted.__cause__ = ssl.SSLCertVerificationError(1, "self-signed")
        no_tls.__cause__ = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
        no_tls.__cause__.reason = "WRONG_VERSION_NUMBER"
        no_http = httpx.RemoteProtocolError("illegal status line: bytearray(b'\\x15\\x03')")
        for fault, remedy in [(untrusted, "ca_file"), (no_tls, "is it http://"), (no_http, "is it https://")]:
            served = Served(fault)
            with self.assertRaisesRegex(headroom.Foreign, remedy):
                served.client(patience_s=60).pools()
            self.assertEqual(len(served.requests), 1)
        moved = Served(httpx.Response(307, headers={"location": "https://elsewhere.test/"}))
        with self.assertRaisesRegex(headroom.Foreign, "leads to https://elsewhere.test/"):
            moved.client(patience_s=60).pools()

    def test_an_answer_that_cannot_be_read_is_something_else(self) -> None:
        unreadable = httpx.Response(200, content=b"[" * 200_000)
        for response in (unreadable, httpx.DecodingError("not gzip")):
            with self.assertRaises(headroom.Foreign):
                Served(response).client().pools()

    def test_a_pause_that_no_clock_holds_is_a_service_that_is_away(self) -> None:
        # The last try without a pause that the service names is at the end of the patience.
        for after, tries in (("9" * 400, 1), ("soon", 2)):
            served = Served(busy(after), busy(after))
            with self.assertRaises(headroom.Unavailable):
                served.client(patience_s=0.5).pools()
            self.assertEqual(len(served.requests), tries)
        self.assertEqual(self.paused("9" * 400), [600.0])

    def test_a_pause_of_nothing_is_one_of_a_second(self) -> None:
        self.assertEqual(self.paused("0"), [1.0])

    def paused(self, after: str) -> list[float]:
        """Seconds that a client waits after this header."""
        paused: list[float] = []
        served = Served(busy(after), httpx.Response(200, json=QUOTA))
        with unittest.mock.patch("headroom._sync.time.sleep", paused.append):
            next(served.client().pool("earth", "A100").quotas(4))
        return paused

    def test_settings_that_no_request_could_be_sent_with_are_refused(self) -> None:
        for url in ("headroom:8080", "http://", "http://127.0.0.1:99999", "http://a b", "ftp://headroom"):
            with self.assertRaisesRegex(ValueError, "write http://HOST:PORT"):
                Headroom(url)
        for token in ("", "two\nlines", "two words", "tökén"):
            with self.assertRaisesRegex(ValueError, "token: expected one token"):
                Served().client(token=token, patience_s=60).pools()

    def test_a_file_without_one_token_is_refused_before_anything_is_sent(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "token"
            for text in ("", " \n", "two\nlines\n"):
                file.write_text(text)
                with self.assertRaisesRegex(ValueError, f"{file}: expected one token"):
                    Served().client(token_file=file, patience_s=60).pools()

    def test_the_file_of_the_token_is_read_for_each_request(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "token"
            served = Served(*(httpx.Response(200, json={"pools": []}) for _ in range(2)))
            client = served.client(token_file=file)
            for token in ("first", "second"):
                file.write_text(f"{token}\n")
                client.pools()
        sent = [request.headers["authorization"] for request in served.requests]
        self.assertEqual(sent, ["Bearer first", "Bearer second"])


RESERVATION = {
    "id": 7,
    "cluster": "earth",
    "gpu_model": "A100",
    "organization": "lab",
    "gpus": 8,
    "from": "2026-12-01T09:00:00Z",
    "to": "2026-12-01T17:00:00Z",
    "by": "desk",
    "created_at": "2026-11-01T00:00:00Z",
    "windows": [{"from": "2026-12-01T09:00:00Z", "to": "2026-12-01T17:00:00Z", "source": "forecast", "probability": 0.9}],
}


class Reservations(unittest.TestCase):
    begin = datetime(2026, 12, 1, 9, tzinfo=timezone.utc)

    def test_a_reservation_is_tried_sold_listed_and_withdrawn(self) -> None:
        served = Served(
            httpx.Response(200, json={**RESERVATION, "id": None}),
            busy(),
            httpx.Response(201, json=RESERVATION),
            httpx.Response(200, json=RESERVATION),
            httpx.Response(200, json={"reservations": [RESERVATION]}),
            httpx.Response(204),
        )
        client = served.client(patience_s=60)
        pool = client.pool("earth", "A100")
        tried = pool.reserve(organization="lab", gpus=8, begin=self.begin, end="2026-12-01T17:00:00Z", dry_run=True)
        self.assertEqual((tried.id, tried.windows[0].probability), (None, 0.9))
        until = datetime(2027, 3, 1, tzinfo=timezone.utc)
        sold = pool.reserve(
            organization="lab", gpus=8, begin=self.begin, end="2026-12-01T17:00:00Z", days=("TU", "TH"), until=until
        )
        self.assertEqual((sold.id, sold.from_), (7, "2026-12-01T09:00:00Z"))
        self.assertEqual(client.reservation(7), sold)
        self.assertEqual(pool.reservations(past=True).reservations, [sold])
        client.withdraw(7)
        of = "cluster=earth&gpu_model=A100"
        self.assertEqual(
            [f"{one.method} {one.url.raw_path.decode()}" for one in served.requests],
            ["POST /v1/reservations?dry_run=true"]
            + ["POST /v1/reservations"] * 2
            + ["GET /v1/reservations/7", f"GET /v1/reservations?{of}&past=true", "DELETE /v1/reservations/7"],
        )
        body = json.loads(served.requests[2].content)
        self.assertEqual((body["from"], body["gpus"]), ("2026-12-01T09:00:00Z", 8))
        self.assertEqual(body["repeats"], {"days": ["TU", "TH"], "until": "2027-03-01T00:00:00Z"})
        self.assertNotIn("repeats", json.loads(served.requests[0].content))

    def test_an_id_is_one_segment_of_a_path_and_none_of_another_request(self) -> None:
        bare: Any = "../overrides/1"
        served = Served(httpx.Response(204), httpx.Response(204))
        served.client().withdraw(bare)
        asyncio.run(served.asynchronous().withdraw(bare))
        paths = {request.url.raw_path for request in served.requests}
        self.assertEqual(paths, {b"/v1/reservations/..%2Foverrides%2F1"})
        unsent = Served()
        client, both = unsent.client(), unsent.asynchronous()
        pool, pools = client.pool("earth", "A100"), both.pool("earth", "A100")
        for no_id in ("", ".", ".."):
            spelt: Any = no_id
            for refused in (pool.task, pool.why, pool.when, pool.cancel, pool.finish, pool.checkpoint):
                self.assertRaisesRegex(ValueError, "is not an id", refused, no_id)
            for unquoted in (client.withdraw, client.reservation):
                self.assertRaisesRegex(ValueError, "is not an id", unquoted, spelt)
            with self.assertRaisesRegex(ValueError, "is not an id"):
                asyncio.run(pools.cancel(no_id))
        self.assertEqual(unsent.requests, [])

    def test_a_repetition_on_no_day_is_refused_and_not_sold_once(self) -> None:
        pool = Served().client().pool("earth", "A100")
        begin, end = "2026-12-01T09:00:00Z", "2026-12-01T17:00:00Z"
        with self.assertRaisesRegex(ValueError, "days is empty"):
            pool.reserve(organization="lab", gpus=8, begin=begin, end=end, days=[])

    def test_the_calendar_is_text_and_a_page_in_its_place_is_named(self) -> None:
        calendar = httpx.Response(200, text="BEGIN:VCALENDAR\r\n", headers={"content-type": "text/calendar; charset=utf-8"})
        served = Served(calendar, httpx.Response(200, text="<html>", headers={"content-type": "text/html"}), httpx.Response(204))
        pool = served.client().pool("earth", "A100")
        self.assertEqual(pool.reservations_ics(), "BEGIN:VCALENDAR\r\n")
        with self.assertRaisesRegex(headroom.Foreign, "expected text/calendar, found text/html"):
            pool.reservations_ics()
        with self.assertRaisesRegex(headroom.Foreign, "expected dict"):
            pool.reservations()

    def test_times_without_a_zone_and_an_end_of_no_repetition_are_refused(self) -> None:
        pool = Served().client().pool("earth", "A100")
        with self.assertRaisesRegex(ValueError, "has no time zone"):
            pool.reserve(organization="lab", gpus=8, begin=datetime(2026, 12, 1, 9), end="2026-12-01T17:00:00Z")
        with self.assertRaisesRegex(ValueError, "name the days"):
            pool.reserve(organization="lab", gpus=8, begin=self.begin, end=self.begin, until="2027-03-01T00:00:00Z")


class Streams(unittest.TestCase):
    def test_a_quota_is_followed_by_its_tag_and_goes_on_after_a_failure(self) -> None:
        served = Served(
            httpx.Response(200, json=QUOTA, headers={"etag": '"a"'}),
            busy(),
            httpx.Response(304),
            httpx.Response(200, json={**QUOTA, "available_gpus": 5.0}, headers={"etag": '"b"'}),
        )
        with unittest.mock.patch("headroom._sync.time.sleep"):
            quotas = list(itertools.islice(served.client().pool("earth", "A100").quotas(4), 2))
        self.assertEqual([quota.available_gpus for quota in quotas], [3.5, 5.0])
        self.assertNotIn("if-none-match", served.requests[0].headers)
        for request in served.requests[1:]:
            self.assertEqual((request.headers["if-none-match"], request.url.params["wait"]), ('"a"', "30s"))

    def test_events_go_on_after_the_last_one(self) -> None:
        def stream(*ids: str) -> httpx.Response:
            rows = ({"id": one, "kind": "started", "cluster": "e", "gpu_model": "A", "at": "2026-01-05T10:00:00Z"} for one in ids)
            text = "".join(f"id: {row['id']}\nevent: started\ndata: {json.dumps(row)}\n\n: alive\n\n" for row in rows)
            parts = (text[at : at + 7].encode() for at in range(0, len(text), 7))
            return httpx.Response(200, content=parts, headers={"content-type": "text/event-stream"})

        served = Served(stream("7.0", "8.0"), stream("9.0"))
        with unittest.mock.patch("headroom._sync.time.sleep"):
            events = list(itertools.islice(served.client().pool("e", "A").events(after="6.1"), 3))
        self.assertEqual([event.id for event in events], ["7.0", "8.0", "9.0"])
        self.assertEqual([request.headers["last-event-id"] for request in served.requests], ["6.1", "8.0"])

    def test_a_page_in_place_of_a_stream_of_events_is_named(self) -> None:
        page = httpx.Response(200, text="<html>sign in</html>", headers={"content-type": "text/html"})
        bad = httpx.Response(200, content=b"data: {}\n\n", headers={"content-type": "text/event-stream"})
        for response in (page, bad):
            with self.assertRaises(headroom.Foreign):
                next(Served(response).client().pool("e", "A").events())


class Codec(unittest.TestCase):
    def test_answers_may_have_fields_and_words_that_the_package_does_not_know(self) -> None:
        quota = decode(models.QuotaAnswer, {**QUOTA, "new": 1, "stage": "brand-new"})
        self.assertEqual(quota.stage, "brand-new")
        with self.assertRaisesRegex(Malformed, "/reasons/0/code: expected str, found 5"):
            decode(models.QuotaAnswer, {**QUOTA, "reasons": [{"code": 5, "detail": ""}]})
        with self.assertRaisesRegex(Malformed, "/stale: expected bool, found 1"):
            decode(models.QuotaAnswer, {**QUOTA, "stale": 1})

    def test_a_body_is_written_with_the_names_of_the_wire_and_without_what_is_absent(self) -> None:
        elastic = models.ElasticBody(min_pods=1)
        body = models.TaskBody(
            cluster="e", gpu_model="A", id="x", organization="o", class_="spot", gpus_per_pod=1.0, elastic=elastic
        )
        self.assertEqual(encode(body)["class"], "spot")
        self.assertEqual(encode(body)["elastic"], {"min_pods": 1})
        self.assertEqual(decode(models.TaskBody, encode(body)), body)

    def test_nothing_may_be_admitted_on_a_quota_that_is_too_old(self) -> None:
        quota = decode(models.QuotaAnswer, QUOTA)
        at = [datetime(2026, 1, 5, 10, 9, 59, tzinfo=timezone.utc), datetime(2026, 1, 5, 10, 10, tzinfo=timezone.utc)]
        self.assertEqual([headroom.is_valid(quota, now) for now in at], [True, False])


class Both(unittest.TestCase):
    def test_both_clients_have_the_same_methods_with_the_same_parameters(self) -> None:
        for plain, other in ((Headroom, AsyncHeadroom), (Pool, AsyncPool)):
            for name, method in inspect.getmembers(plain, inspect.isfunction):
                if name.startswith("_"):
                    continue
                twin = getattr(other, name)
                ours, theirs = inspect.signature(method), inspect.signature(twin)
                self.assertEqual(list(ours.parameters.values())[1:], list(theirs.parameters.values())[1:], name)
                is_async = inspect.iscoroutinefunction(twin) or inspect.isasyncgenfunction(twin)
                self.assertTrue(is_async or name == "pool", name)
                self.assertEqual(method.__doc__, twin.__doc__, name)

    def test_the_asynchronous_client_retries_and_follows_too(self) -> None:
        async def run() -> list[float]:
            served = Served(busy(), httpx.Response(200, json=QUOTA), httpx.Response(200, json=QUOTA))
            async with served.asynchronous() as client:
                found = [(await client.quota("earth", "A100", hours=4)).available_gpus]
                async for quota in client.pool("earth", "A100").quotas(4):
                    found.append(quota.available_gpus)
                    break
                return found

        self.assertEqual(asyncio.run(run()), [3.5, 3.5])


if __name__ == "__main__":
    unittest.main()
