"""An agent that asks Headroom through the official SDK of the Model Context Protocol.

    agent.py URL|PROGRAM API TOKEN_FILE CLUSTER GPU_MODEL MODE [--allow-writes]

A URL is a running server, a PROGRAM is started. MODE is `legacy` for the protocol up to 2025-11-25, `auto` for the newest that both know.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta, timezone
from typing import Any

from mcp import Client, MCPError, StdioServerParameters

READS = {"pools", "quota", "why", "when", "what_if", "promises", "statement", "reservations"}
WRITES = {"submit", "cancel", "reserve", "withdraw"}


async def answer(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result.structured_content)
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, result.structured_content)
    error = result.structured_content["error"]
    assert error["code"] and error["detail"] and error["remedy"], error
    return error


async def fault(client: Client, tool: str, **arguments: Any) -> str:
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as refused:
        return str(refused)
    raise AssertionError(f"{tool} takes {arguments}: {result}")


def codes(value: Any) -> list[Any]:
    """All objects with a code and a detail."""
    if isinstance(value, list):
        return [one for item in value for one in codes(item)]
    if isinstance(value, dict):
        own = [value] if "code" in value and "detail" in value else []
        return own + [one for item in value.values() for one in codes(item)]
    return []


async def reads(client: Client, of: dict[str, str]) -> None:
    pools = await answer(client, "pools")
    assert of["gpu_model"] in {pool["gpu_model"] for pool in pools["pools"]}, pools
    quota = await answer(client, "quota", hours=4, **of)
    assert quota["stage"] == "fresh" and quota["hours"] == 4, quota
    # The pool is the only one.
    assert (await answer(client, "quota", hours=4))["hours"] == 4
    why = await answer(client, "why", hours=4, **of)
    assert why["steps"], why
    explained = codes(why)
    assert explained and all(one.get("remedy") for one in explained), explained
    smaller = await answer(client, "what_if", hours=4, capacity_change_gpus=-2, **of)
    assert smaller["now"]["capacity_gpus"] - smaller["then"]["capacity_gpus"] == 2, smaller
    assert (await answer(client, "promises", days=7, **of))["guarantee_rate"] == 0.9
    assert "pools" in await answer(client, "statement")
    assert (await answer(client, "reservations", **of))["reservations"] == []
    none = await refusal(client, "reservations", id=99)
    assert none["code"] == "not-found" and none["status"] == 404, none
    assert "expected `id` alone" in await fault(client, "reservations", id=99, past=True)
    hours = await refusal(client, "quota", hours=5, **of)
    assert hours["code"] == "unknown-hours" and "4" in hours["known"] and hours["retry"] is False, hours
    pool = await refusal(client, "quota", cluster="mars", gpu_model="A100")
    assert pool["code"] in {"unknown-cluster", "unknown-pool"} and pool["status"] == 404, pool
    unknown = await refusal(client, "when", task="missing", **of)
    assert unknown["code"] == "unknown-task", unknown
    assert "expected `task`" in await fault(client, "when", **of)
    assert "expected `task` alone" in await fault(client, "when", task="a", pods=2, **of)
    task = await refusal(client, "why", task="missing", **of)
    assert task["code"] == "unknown-task", task
    assert "unknown field `hour`" in await fault(client, "quota", hour=4)
    assert "unknown tool" in await fault(client, "quotas")


async def writes(client: Client, of: dict[str, str]) -> None:
    submitted = await answer(client, "submit", id="agent-1", organization="org-000", gpus_per_pod=8, **of)
    assert submitted["status"] == "waiting", submitted
    (reason,) = [one for one in codes(submitted) if one["code"] == submitted["detail"]["waits"]["code"]]
    assert reason["remedy"], reason
    why = await answer(client, "why", task="agent-1", **of)
    assert why["task"]["status"] == "waiting" and why["reason"]["remedy"], why
    when = await answer(client, "when", task="agent-1", **of)
    assert when["status"] == "waiting" and all(one["remedy"] for one in when["doubts"]), when
    prices = await answer(client, "when", organization="org-000", gpus_per_pod=8, runs_s=600, **of)
    assert [one["class"] for one in prices["prices"]][-1] == "hp", prices
    assert (await answer(client, "cancel", task="agent-1", **of))["status"] == "deleted"
    await reserves(client, of)


async def reserves(client: Client, of: dict[str, str]) -> None:
    day = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0) + timedelta(days=3)
    window = {"from": day.isoformat(), "to": (day + timedelta(hours=2)).isoformat()}
    asked = {"organization": "org-000", "gpus": 1, **window, **of}
    trial = await answer(client, "reserve", dry_run=True, **asked)
    assert trial["id"] is None and len(trial["windows"]) == 1, trial
    assert (await answer(client, "reservations", **of))["reservations"] == []
    days = sorted({day.strftime("%a").upper()[:2], "MO"})
    sold = await answer(client, "reserve", days=days, **asked)
    assert sorted(sold["repeats"]["days"]) == days and len(sold["windows"]) > 1, sold
    assert (await answer(client, "reserve", days=days, **asked))["id"] == sold["id"]
    assert (await answer(client, "reservations", id=sold["id"]))["organization"] == "org-000"
    assert [one["id"] for one in (await answer(client, "reservations", **of))["reservations"]] == [sold["id"]]
    oversold = await refusal(client, "reserve", **{**asked, "gpus": 8})
    assert oversold["code"] == "oversold", oversold
    assert "`until` needs `days`" in await fault(client, "reserve", until=window["to"], **asked)
    assert "unknown field `weeks`" in await fault(client, "reserve", weeks=2, **asked)
    assert "\"MON\" is not known; write" in await fault(client, "reserve", days=["MON"], **asked)
    assert await answer(client, "withdraw", id=sold["id"]) == {"withdrawn": sold["id"]}
    assert (await answer(client, "withdraw", id=sold["id"])) == {"withdrawn": sold["id"]}
    assert (await answer(client, "reservations", **of))["reservations"] == []
    assert (await answer(client, "reservations", past=True, **of))["reservations"][0]["withdrawn_at"], "it stays in the past"
    assert (await refusal(client, "withdraw", id=99))["code"] == "not-found"


async def main(server: str, api: str, token: str, cluster: str, gpu_model: str, mode: str, *more: str) -> None:
    arguments = ["mcp", "--api", api, "--api-token-file", token, *more]
    of_url = server.startswith("http")
    transport: Any = server if of_url else StdioServerParameters(command=server, args=arguments)
    async with Client(transport, mode=mode) as client:
        assert client.server_info is not None and client.server_info.name == "headroom", client.server_info
        assert client.instructions and "spot quota" in client.instructions
        print(client.protocol_version)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        offered = READS | (WRITES if more else set())
        assert tools.keys() == offered, tools.keys()
        for name, tool in tools.items():
            assert tool.annotations is not None and tool.annotations.read_only_hint == (name in READS), tool
        of = {"cluster": cluster, "gpu_model": gpu_model}
        await reads(client, of)
        if more:
            await writes(client, of)
        else:
            assert "--allow-writes" in await fault(client, "submit", id="x", organization="org-000")
            assert "--allow-writes" in await fault(client, "withdraw", id=1)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
