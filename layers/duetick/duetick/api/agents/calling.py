"""A call of a tool. It becomes a call of the users' API, whose answer becomes the tool's result.

The checks of the API hold for an agent too, since nothing else serves it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, TypeAlias

from duetick.api.agents.messages import INVALID_PARAMS, Object, RpcError, quote_text
from duetick.api.agents.tools import TOOLS, Tool
from duetick.core.answers import Answer, error
from duetick.core.refusals import answer_to
from duetick.domain.errors import Flaw, InvalidSchedule, kind_of, refusals_of, refuse
from duetick.domain.identity import InvalidId, check_key, to_path
from duetick.domain.schedule import Json

Sent: TypeAlias = Mapping[str, object]
"""The parts of an event in which a call differs from the message that brought it."""
Ask: TypeAlias = Callable[[Sent], Answer]

ANYBODY: Final = "u"
"""A user, as short as any may be: the API looks at the length of user and key again."""

_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "string": (str, "text"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
}
"""The kinds of arguments in a query or a header, by the types of JSON Schema."""

_AGAIN: Final = "Call the tool again when the seconds of retryAfter are over."
_OURS: Final = (
    "This is no mistake in the call. Read what was done, with get_schedule or list_schedules, "
    "before you try again; if it fails again, tell the user."
)
NEXT: Final[Mapping[str, str]] = {
    "invalid_schedule": "Correct each field that `problems` names, and call the tool again. "
    "list_actions has what each action takes; preview_schedule checks a cron.",
    "invalid_query": "Correct the argument that the message names, and call the tool again.",
    "invalid_cursor": "Use the `cursor` of the page before as it is, or leave it out.",
    "invalid_schedule_id": "Correct the key; list_schedules has the keys that are there.",
    "schedule_not_found": "list_schedules has the keys that are there, with `state` all also those "
    "of schedules that are done.",
    "job_not_found": "list_jobs has the ids that are there.",
    "schedule_exists": "Use change_schedule for the schedule that has this key, or another key.",
    "idempotency_key_reused": "Use another idempotencyKey: this one made something else.",
    "occurrence_conflict": "Read it again: it is in another state.",
    "version_conflict": "Read the schedule again, then repeat the change.",
    "quota_exceeded": "Tell the user that the limit is reached. It helps to delete what is not "
    "needed any more, if the user agrees.",
    "too_many_writes": _AGAIN,
    "limit_reached": _AGAIN,
    "too_large": "Make the arguments smaller.",
    "internal": _OURS,
    "store_unavailable": _OURS,
    "schema_outdated": _OURS,
    "not_delivered": _OURS,
}
"""The next step after each error."""


def call_tool(params: Object, ask: Ask) -> Object:
    """Return the result of `tools/call`. A refusal of the API is a result that a model reads.

    A call that names no tool is refused by the protocol.
    """
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or name not in TOOLS:
        told = quote_text(name) if isinstance(name, str) else kind_of(name)
        raise RpcError(INVALID_PARAMS, f"No tool is called {told}; these are: {', '.join(TOOLS)}.")
    if not isinstance(arguments, dict | None):
        raise RpcError(INVALID_PARAMS, f"arguments is an object, not {kind_of(arguments)}.")
    tool, given = TOOLS[name], arguments or {}
    try:
        _check(tool, given)
    except InvalidSchedule as problem:
        refusal = answer_to(problem, "") or error("invalid_schedule", str(problem))
        return _make_refusal(tool, refusal)
    answer = ask(_make_call(tool, {**tool.usual, **given}))
    if answer.status >= HTTPStatus.BAD_REQUEST:
        return _make_refusal(tool, answer)
    gone: Object = {"deleted": given.get(tool.names)}
    return _make_result(
        gone if answer.status == HTTPStatus.NO_CONTENT else answer.body, answer.headers
    )


def _check(tool: Tool, given: Object) -> None:
    """Raise a refusal of arguments that the tool does not take, and of a name that no path can
    have.

    An argument of the query or of a header becomes a text, so one of another kind is refused here.
    The API checks all others.
    """
    takes = tool.takes()
    known = f"is not an argument; those are {', '.join(takes) or 'none'}."
    refuse(
        [
            *(
                InvalidSchedule((name,), known, "unknown_field")
                for name in given
                if name not in takes
            ),
            *refusals_of([lambda: _check_name(tool.names, given.get(tool.names))]),
            *_wrong_kinds(tool, given),
        ]
    )


def _wrong_kinds(tool: Tool, given: Object) -> Iterator[InvalidSchedule]:
    """Yield a refusal of each argument in the query or a header that is of another kind than its
    schema.

    A text is left to the API: it may be the text of a number.
    """
    for name in (*tool.query, *tool.headers):
        value, kind = given.get(name), str(tool.arguments[name]["type"])
        if value is None or isinstance(value, str) or type(value) is _KINDS[kind][0]:
            continue
        said = f"expected {_KINDS[kind][1]}, got {kind_of(value)}."
        yield InvalidSchedule((name,), said, "wrong_type")


def _check_name(name: str, value: Json) -> None:
    """Raise a refusal unless the argument that the path has can be in a path."""
    if name and value is None:
        raise InvalidSchedule((name,), "is missing.", "missing")
    if name and not isinstance(value, str):
        raise InvalidSchedule((name,), f"expected text, got {kind_of(value)}.", "wrong_type")
    if name:
        try:
            check_key(ANYBODY, str(value))
        except InvalidId as wrong:
            named = (Flaw((name,), one.code, one.problem) for one in wrong.flaws)
            raise InvalidId.of(named) from None


def _make_call(tool: Tool, given: Object) -> Sent:
    """Return the call of the API: its arguments are in the path, the query, the headers, the
    body.
    """
    body = {name: value for name, value in given.items() if name not in tool.outside_body}
    path = tool.path.replace("{key}", to_path(str(given.get(tool.names, ""))))
    return {
        "httpMethod": tool.method,
        "path": path,
        "resource": path,
        "queryStringParameters": _texts(given, tool.query),
        "multiValueQueryStringParameters": None,
        "headers": {tool.headers[name]: told for name, told in _texts(given, tool.headers).items()},
        "body": json.dumps(body) if tool.has_body else None,
        "isBase64Encoded": False,
    }


def _texts(given: Object, names: Iterable[str]) -> dict[str, str]:
    """Return some arguments as texts, as a query or a header has them. null is none."""
    found = ((name, given.get(name)) for name in names)
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found
        if value is not None
    }


def _make_result(body: Object, headers: Mapping[str, str]) -> Object:
    """Return the result: the body of the API, for programs and as text for a model."""
    told = [json.dumps(body, ensure_ascii=False)]
    if "warning" in headers:
        warned = headers["warning"].partition('"')[2].rpartition('"')[0]
        told.append(f"The schedule {warned}.")
    return {"content": [_text(one) for one in told], "structuredContent": body, "isError": False}


def _make_refusal(tool: Tool, answer: Answer) -> Object:
    """Return the refusal of the API, with its next step. A header has its argument's name."""
    told = json.dumps(answer.body, ensure_ascii=False)
    for argument, header in tool.headers.items():
        told = told.replace(header, argument)
    body: Object = json.loads(told)
    if "retry-after" in answer.headers:
        body["retryAfter"] = int(answer.headers["retry-after"])
    step = NEXT.get(str(body.get("error")))
    if step:
        body["next"] = step
    text = json.dumps(body, ensure_ascii=False)
    return {"content": [_text(text)], "structuredContent": body, "isError": True}


def _text(told: str) -> Object:
    return {"type": "text", "text": told}
