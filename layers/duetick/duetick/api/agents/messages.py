"""The messages of JSON-RPC 2.0, as the Model Context Protocol uses them."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from duetick.core.wire import require_json
from duetick.domain.errors import InvalidSchedule, kind_of
from duetick.domain.schedule import Json

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
TOO_MUCH: Final = -32000
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

LONGEST_SHOWN: Final = 80

MessageId: TypeAlias = str | int | None
Object: TypeAlias = dict[str, Json]


class RpcError(Exception):
    """The refusal of a message: a code of the protocol, and a text that says what to do."""

    def __init__(self, code: int, message: str, **data: Json) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Message:
    """A request. A notification has no id, and no answer."""

    method: str
    params: Object
    id: MessageId


@dataclass(frozen=True, slots=True)
class Posted:
    """An answer of the client. This server asks nothing, and reads none."""


def read_text(text: str) -> Json:
    """Return the JSON of a body. Raises RpcError if it is none, or names a field twice."""
    try:
        return require_json(text, "the message")
    except InvalidSchedule as problem:
        raise RpcError(PARSE_ERROR, str(problem)) from None


def read_message(value: Json) -> Message | Posted:
    """Return a message. Raises RpcError if it is none of JSON-RPC 2.0."""
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, f"A message is an object, not {kind_of(value)}.")
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'A message has "jsonrpc": "2.0".')
    if "method" not in value and ("result" in value or "error" in value):
        return Posted()
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "A request names its method as text.")
    if "id" in value and (isinstance(value["id"], bool) or not isinstance(value["id"], str | int)):
        raise RpcError(INVALID_REQUEST, "The id of a request is text or a whole number.")
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, f"params is an object, not {kind_of(params)}.")
    return Message(method, params, id_of(value))


def id_of(value: Json) -> MessageId:
    """Return the id that an answer to the message repeats; None if it has none that can be read."""
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def result_json(call: Message, result: Object) -> Object:
    """Return the answer to a call that was served."""
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


def error_json(asked: MessageId, error: RpcError) -> Object:
    """Return the answer to a call that was refused."""
    told: Object = {"code": error.code, "message": error.message}
    return {
        "jsonrpc": "2.0",
        "id": asked,
        "error": told | ({"data": error.data} if error.data else {}),
    }


def quote_text(text: str) -> str:
    """Return a foreign text as a message quotes it: cut, and without unprintable characters."""
    return repr(text[:LONGEST_SHOWN])
