"""The endpoint of agents: the Model Context Protocol over HTTP, without sessions or streams.

Two generations of the protocol are spoken. In the first a client shakes hands (`initialize`), and
each message stands by itself afterwards. In the second each request names its version.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from duetick.api.agents.calling import Ask, call_tool
from duetick.api.agents.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    TOO_MUCH,
    UNSUPPORTED_VERSION,
    Message,
    Object,
    Posted,
    RpcError,
    error_json,
    id_of,
    quote_text,
    read_message,
    read_text,
    result_json,
)
from duetick.api.agents.tools import INSTRUCTIONS, list_tools
from duetick.core.answers import Answer, error, wrong_method
from duetick.core.wire import LARGEST_BODY, is_too_large
from duetick.domain.schedule import Json
from duetick.runtime import gateway, wiring

SHAKING: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the first generation, the newest last."""
SAYING: Final = ("2026-07-28",)
"""Those of the second."""
BATCHING: Final = ("", "2024-11-05", "2025-03-26")
"""Those in which several messages may come as a list; a client that names none may speak one."""
MOST_OF_A_BATCH: Final = 20
LARGEST_REPLY: Final = 3 * 1024 * 1024
"""The bytes of a batch's answers after which no more of it is served: Lambda answers with 6 MB."""

RELEASE: Final = "0.1.0"
"""The version of this package: a function's layer has no metadata of it."""
VERSION: Final = "mcp-protocol-version"
META: Final = "io.modelcontextprotocol/"
KEPT_MS: Final = 300_000
"""A client may keep the list of tools for so long: a deployment changes it."""
STATUSES: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
BROKEN: Final = frozenset({PARSE_ERROR, INVALID_REQUEST, UNSUPPORTED_VERSION})
"""The errors of a message that is no call. Other errors of the first generation have status 200."""


@dataclass(frozen=True, slots=True)
class RpcReply:
    """A status, and a body unless there is nothing to say."""

    status: int
    body: Json = None


def serve(event: dict[str, Any], refused: Answer | None, ask: Ask) -> gateway.Response:
    """Answer a request to the endpoint. `refused` is the refusal of its caller, `ask` calls a route
    of the API for that caller.
    """
    refusal = refused or _refuse_request(event)
    if refusal:
        return _respond(refusal.status, refusal.body, refusal.headers)
    reply = _reply(event, ask)
    return _respond(reply.status, reply.body, {})


def _respond(status: int, body: Json, headers: Mapping[str, str]) -> gateway.Response:
    """Return the response. Half of a character stays escaped: UTF-8 does not have it."""
    text = "" if body is None else json.dumps(body, ensure_ascii=False)
    named = {**headers, "Content-Type": "application/json"}
    return {
        "statusCode": status,
        "body": text.encode(errors="backslashreplace").decode(),
        "isBase64Encoded": False,
        "multiValueHeaders": {name: [value] for name, value in named.items()},
    }


def _refuse_request(event: dict[str, Any]) -> Answer | None:
    """Return the refusal of a request that is no message of an agent. A page of another origin is
    none, even if its name leads here.
    """
    if str(event["httpMethod"]).upper() != "POST":
        return wrong_method("POST")
    origin = gateway.headers(event).get("origin", "")
    if origin and origin != wiring.settings().allowed_origin:
        return error("forbidden", "No page of that origin may call; AllowedOrigin names the one.")
    return None


def _reply(event: dict[str, Any], ask: Ask) -> RpcReply:
    """Return the answer to the messages of a body."""
    text, headers = gateway.body(event), gateway.headers(event)
    if is_too_large(text):
        said = f"A message may have {LARGEST_BODY // 1024} KB."
        return RpcReply(413, error_json(None, RpcError(INVALID_REQUEST, said)))
    try:
        value = read_text(text)
    except RpcError as problem:
        return RpcReply(400, error_json(None, problem))
    version = headers.get(VERSION, "")
    if version in SAYING or (version not in SHAKING and _says_version(value)):
        return _reply_to_saying(value, headers, ask)
    if version and version not in SHAKING:
        return RpcReply(400, error_json(id_of(value), _refuse_version(version)))
    if isinstance(value, list):
        return _reply_to_batch(value, version, ask)
    return _reply_to_shaking(value, ask)


def _refuse_version(version: str) -> RpcError:
    """Return the refusal of a version that is not spoken here."""
    known: list[Json] = [*SHAKING, *SAYING]
    said = f"The version {quote_text(version)} is not supported."
    return RpcError(UNSUPPORTED_VERSION, said, supported=known, requested=version)


def _reply_to_batch(values: list[Json], version: str, ask: Ask) -> RpcReply:
    """Return the answers to several messages, in their order."""
    problem = _refuse_batch(values, version)
    if problem:
        return RpcReply(400, error_json(None, RpcError(INVALID_REQUEST, problem)))
    answers: list[Json] = []
    size = 0
    for value in values:
        reply = _reply_to_shaking(value, ask) if size < LARGEST_REPLY else _refuse_rest(value)
        if reply.body is not None:
            answers.append(reply.body)
            size += len(json.dumps(reply.body, ensure_ascii=False).encode(errors="replace"))
    return RpcReply(200, answers) if answers else RpcReply(202)


def _refuse_batch(values: list[Json], version: str) -> str:
    """Return the reason to refuse a list of messages; an empty text if there is none."""
    if version not in BATCHING:
        return f"Version {version} takes one message in a body, not a list."
    if not 0 < len(values) <= MOST_OF_A_BATCH:
        return f"A list has 1 to {MOST_OF_A_BATCH} messages, not {len(values)}."
    if any(isinstance(one, dict) and one.get("method") == "initialize" for one in values):
        return "initialize comes alone, not in a list."
    return ""


def _refuse_rest(value: Json) -> RpcReply:
    """Return the refusal of a call whose answer has no room; nothing if the call wants no
    answer.
    """
    asked = id_of(value)
    if asked is None:
        return RpcReply(202)
    said = "The answers before it fill the reply: this was not done. Send it again by itself."
    return RpcReply(200, error_json(asked, RpcError(TOO_MUCH, said)))


def _reply_to_shaking(value: Json, ask: Ask) -> RpcReply:
    """Return the answer to a message of the first generation."""
    try:
        message = read_message(value)
        if isinstance(message, Posted) or message.id is None:
            return RpcReply(HTTPStatus.ACCEPTED)
        return RpcReply(200, result_json(message, _serve_shaking(message, ask)))
    except RpcError as problem:
        status = STATUSES[problem.code] if problem.code in BROKEN else 200
        return RpcReply(status, error_json(id_of(value), problem))


def _serve_shaking(call: Message, ask: Ask) -> Object:
    if call.method == "initialize":
        return _shake(call.params)
    if call.method == "ping":
        return {}
    return _serve(call, ask)


def _shake(params: Object) -> Object:
    """Return the terms of a connection: the client's version, or the newest that shakes hands."""
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        raise RpcError(INVALID_PARAMS, f"protocolVersion is text, such as {SHAKING[-1]!r}.")
    return {
        "protocolVersion": wanted if wanted in SHAKING else SHAKING[-1],
        "capabilities": {"tools": {}},
        "serverInfo": _server(),
        "instructions": INSTRUCTIONS,
    }


def _server() -> Object:
    return {"name": "duetick", "title": "Duetick: schedules and jobs", "version": RELEASE}


def _serve(call: Message, ask: Ask) -> Object:
    """Return the result of a call that both generations have."""
    if call.method == "tools/list":
        if call.params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "The list of tools is one page; leave out the cursor.")
        return {"tools": list_tools(wiring.flows())}
    if call.method == "tools/call":
        return call_tool(call.params, ask)
    raise RpcError(METHOD_NOT_FOUND, f"There is no method {quote_text(call.method)}.")


def _says_version(value: Json) -> bool:
    """Return True if a message names its version, as messages of the second generation do."""
    return f"{META}protocolVersion" in _meta_of(value)


def _meta_of(value: Json) -> Object:
    params = value.get("params") if isinstance(value, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def _reply_to_saying(value: Json, headers: Mapping[str, str], ask: Ask) -> RpcReply:
    """Return the answer to a message of the second generation."""
    try:
        message = read_message(value)
        if isinstance(message, Posted):
            raise RpcError(INVALID_REQUEST, "No answer is awaited here.")
        if message.id is None:
            return RpcReply(HTTPStatus.ACCEPTED)
        _check_saying(message, headers)
        return RpcReply(200, result_json(message, _serve_saying(message, ask)))
    except RpcError as problem:
        return RpcReply(STATUSES.get(problem.code, 200), error_json(id_of(value), problem))


def _check_saying(call: Message, headers: Mapping[str, str]) -> None:
    """Raise RpcError unless the request names a version, and its headers name the same."""
    meta = _meta_of({"params": call.params})
    for name in ("protocolVersion", "clientCapabilities"):
        if f"{META}{name}" not in meta:
            raise RpcError(INVALID_PARAMS, f"params._meta lacks {META}{name}.")
    version, named = meta[f"{META}protocolVersion"], call.params.get("name")
    _check_header(headers, VERSION, version)
    _check_header(headers, "mcp-method", call.method)
    if call.method == "tools/call" and named is not None:
        _check_header(headers, "mcp-name", named)
    if version not in SAYING:
        raise _refuse_version(str(version))


def _check_header(headers: Mapping[str, str], name: str, wanted: Json) -> None:
    """Raise RpcError if a header contradicts the body: the machines on the way read the headers."""
    if _decode(headers.get(name)) != wanted:
        raise RpcError(HEADER_MISMATCH, f"The header {name} is not what the body says.")


def _decode(value: str | None) -> str | None:
    """Return the text of a header: as it is, or of `=?base64?…?=`."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _serve_saying(call: Message, ask: Ask) -> Object:
    if call.method == "server/discover":
        known: list[Json] = [*SAYING, *SHAKING]
        found: Object = {"supportedVersions": known, "capabilities": {"tools": {}}}
        found |= {"instructions": INSTRUCTIONS} | _describe_caching()
    else:
        found = _serve(call, ask) | (_describe_caching() if call.method == "tools/list" else {})
    return found | {"resultType": "complete", "_meta": {f"{META}serverInfo": _server()}}


def _describe_caching() -> Object:
    """Return the time for which an answer may be kept, and its scope: each user's list is the
    same.
    """
    return {"ttlMs": KEPT_MS, "cacheScope": "private"}
