"""An agent on the official SDK, in an environment of its own: the calls come in on stdin, as JSON.

For each mode in which the SDK connects, it prints the negotiated version, the tools, and the
results.
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def tell_refusal(response: httpx2.Response) -> None:
    """Tell the refusal of the server: the SDK itself does not."""
    if response.status_code >= 400:
        await response.aread()
        sys.stderr.write(f"{response.request.method} {response.status_code} {response.text}\n")


async def act(asked: dict[str, Any], mode: str) -> dict[str, Any]:
    """Connect in that mode, list the tools, and make the calls."""
    headers = {"Authorization": f"Bearer {asked['token']}", **asked["headers"]}
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=60, event_hooks={"response": [tell_refusal]}
        ) as http,
        Client(streamable_http_client(asked["url"], http_client=http), mode=mode) as client,
    ):
        listed = await client.list_tools()
        results = [await call(client, *one) for one in asked["calls"]]
        return {
            "version": client.protocol_version,
            "instructions": client.instructions,
            "tools": [json.loads(one.model_dump_json(by_alias=True)) for one in listed.tools],
            "results": results,
        }


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; an error of the protocol is told by its code."""
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as problem:
        return {"code": problem.error.code, "message": problem.error.message}
    found: dict[str, Any] = json.loads(result.model_dump_json(by_alias=True))
    return found


async def main() -> None:
    """Act in each mode."""
    asked = json.load(sys.stdin)
    told = {mode: await act(asked, mode) for mode in asked["modes"]}
    sys.stdout.write(json.dumps(told))


asyncio.run(main())
