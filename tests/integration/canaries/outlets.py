"""The outlets: everything through which Duetick writes, with its reader. One line each.

A new route, command or log line is a line here, and the act in `acts.py` that lets it speak.
"""

from typing import Final

from tests.integration.canaries.planted import Reader

ROUTES: Final = (
    "GET /api/actions",
    "GET /api/flows",
    "POST /api/upcoming",
    "POST /api/mcp",
    "POST /api/forecast",
    "POST /api/users/{user}/forecast",
    "GET /api/schedules",
    "POST /api/schedules",
    "POST /api/schedules/batch",
    "GET /api/schedules/by-external/{key}",
    "GET /api/schedules/{key}",
    "PUT /api/schedules/{key}",
    "PATCH /api/schedules/{key}",
    "DELETE /api/schedules/{key}",
    "POST /api/schedules/{key}/pause",
    "POST /api/schedules/{key}/resume",
    "POST /api/schedules/{key}/run",
    "GET /api/schedules/{key}/upcoming",
    "GET /api/schedules/{key}/history",
    "GET /api/schedules/{key}/explain",
    "GET /api/schedules/{key}/timeline",
    "GET /api/users/{user}/actions",
    "GET /api/users/{user}/schedules",
    "POST /api/users/{user}/schedules",
    "POST /api/users/{user}/schedules/batch",
    "GET /api/users/{user}/schedules/by-external/{key}",
    "GET /api/users/{user}/schedules/{key}",
    "PUT /api/users/{user}/schedules/{key}",
    "PATCH /api/users/{user}/schedules/{key}",
    "DELETE /api/users/{user}/schedules/{key}",
    "POST /api/users/{user}/schedules/{key}/pause",
    "POST /api/users/{user}/schedules/{key}/resume",
    "POST /api/users/{user}/schedules/{key}/run",
    "GET /api/users/{user}/schedules/{key}/upcoming",
    "GET /api/users/{user}/schedules/{key}/history",
    "GET /api/users/{user}/schedules/{key}/explain",
    "GET /api/users/{user}/schedules/{key}/timeline",
    "GET /api/jobs",
    "POST /api/jobs",
    "POST /api/jobs/batch",
    "GET /api/jobs/{key}",
    "POST /api/jobs/{key}/cancel",
    "GET /api/jobs/{key}/history",
    "GET /api/jobs/{key}/explain",
    "GET /api/users/{user}/jobs",
    "POST /api/users/{user}/jobs",
    "POST /api/users/{user}/jobs/batch",
    "GET /api/users/{user}/jobs/{key}",
    "POST /api/users/{user}/jobs/{key}/cancel",
    "GET /api/users/{user}/jobs/{key}/history",
    "GET /api/users/{user}/jobs/{key}/explain",
    "GET /api/users/{user}/export",
    "DELETE /api/users/{user}",
    "POST /api/users/{user}/schedules/{key}/mend",
    "DELETE /api/occurrences/{id}",
    "DELETE /api/limits/{scope}",
    "DELETE /api/pauses/{scope}",
    "GET /api/occurrences",
    "GET /api/occurrences/{id}",
    "GET /api/limits",
    "GET /api/pauses",
    "GET /api/users/{user}/backfills",
    "GET /api/users/{user}/backfills/{key}",
    "POST /api/all-occurrences/cancel",
    "POST /api/all-occurrences/delete",
    "POST /api/all-occurrences/retry",
    "POST /api/occurrences/{id}/cancel",
    "POST /api/occurrences/{id}/retry",
    "POST /api/users/{user}/backfills/{key}/continue",
    "POST /api/users/{user}/backfills/{key}/stop",
    "POST /api/users/{user}/schedules/{key}/backfills",
    "GET /api/static-schedules/{flow}/{id}",
    "GET /api/static-schedules/{flow}/{id}/explain",
    "GET /api/static-schedules/{flow}/{id}/history",
    "GET /api/static-schedules/{flow}/{id}/timeline",
    "POST /api/static-schedules/{flow}/{id}/pause",
    "POST /api/static-schedules/{flow}/{id}/resume",
    "POST /api/recover",
    "PUT /api/limits/{scope}",
    "PUT /api/pauses/{scope}",
    "GET /api/overview",
    "GET /api/operations",
    "GET /api/unreadable",
    "GET /api/workers",
    "GET /api/locks",
    "GET /api/all-schedules",
    "POST /api/all-schedules/batch",
    "GET /api/flows/{flow}/schedules",
    "POST /api/flows/{flow}/schedules/{id}/dispatch",
    "POST /api/schedules/by-external/{key}/dispatch",
)
"""Each route of the published document, the three of dispatch, and that of agents."""

COMMANDS: Final[dict[str, Reader]] = {
    "local": "operator",
    "layer": "operator",
    "new": "operator",
    "package": "operator",
    "token": "operator",
    "migrate": "operator",
    "recover": "operator",
    "redrive": "operator",
    "costs": "operator",
    "verify": "operator",
    "backfill continue": "operator",
    "backfill list": "operator",
    "backfill show": "operator",
    "backfill start": "operator",
    "backfill stop": "operator",
    "occurrences cancel": "operator",
    "occurrences delete": "operator",
    "occurrences list": "operator",
    "occurrences retry": "operator",
    "occurrences show": "operator",
    "console": "operator",
    "limit": "operator",
    "limits": "operator",
    "unlimit": "operator",
    "pause": "operator",
    "pauses": "operator",
    "resume": "operator",
    "check": "operator",
    "locks": "operator",
    "purge": "operator",
    "workers": "operator",
    "rebuild": "operator",
    "overview": "operator",
    "operations": "operator",
    "unreadable": "operator",
    "users": "operator",
    "upcoming": "operator",
    "forecast": "operator",
    "doctor": "operator",
    **{
        f"{verb} {form}": "owner"
        for verb in ("import", "export")
        for form in ("crontab", "eventbridge", "pgboss", "apscheduler", "csv", "jsonl")
    },
    "jobs add": "owner",
    "jobs list": "owner",
    "jobs show": "owner",
    "jobs cancel": "owner",
    "jobs history": "owner",
    "jobs explain": "owner",
    "schedules mend": "operator",
    "schedules dispatch": "operator",
    **{
        f"schedules {verb}": "owner"
        for verb in (
            "list", "actions", "get", "put", "pause", "resume", "run", "delete", "history",
            "upcoming", "explain", "by-external",
        )
    },
}  # fmt: skip
"""Each command: what it prints on both streams, its errors too."""

LINES: Final = (
    "tick", "dead", "claim_failed", "delivery_failed", "release_failed", "reject_failed",
    "transport_failed", "hook_failed", "purge", "purge_failed", "witness_failed",
    "dispatch", "dispatch_failed", "action_failed", "resolver_failed", "input_failed",
    "enqueue_failed", "refused", "quota_reached", "route_failed", "store_unavailable",
    "schema_outdated", "tight", "verify", "unaccounted", "gone", "gone_failed", "audit",
    "unindexed", "stale", "unreadable", "overdue", "old_tzdata", "restored", "recover",
    "deploy", "deploy_failed", "event", "event_failed", "operation_unfinished",
)  # fmt: skip
"""Each log line by its `action`; those of operators' calls have the names of operations."""

SILENT: Final = {
    "item_too_large": "it names nothing but a schedule, on DynamoDB alone",
    "auto_paused": "it names a schedule and a number",
    "auto_pause_failed": "it names a schedule; its stack is any line's",
    "limit_kept": "it names a schedule, and what the store said",
    "backfill_failed": "it names a backfill; its stack is any line's",
    "backfill_ended": "it names a backfill and numbers",
    "report_failed": "its stack is any line's",
    "purge_locked": "it names no schedule",
    "purge_ended": "it has numbers",
    "inbox_refused": "it names the number of a row, and which part of its user cannot be",
    "inbox_failed": "its stack is any line's",
    "worker_lost": "it names a run of a function",
    "ring": "it names a schedule, an occurrence and a status, where bells ring",
    "bells": "it has numbers",
    "bell_failed": "it names a schedule, and why EventBridge did not take its times",
    "wake_failed": "its stack is any line's",
    "pack": "it has numbers, and the name of a message",
    "pack_unreadable": "it names a message, and the part of it that cannot be read",
    "pack_failed": "it names a message; its stack is any line's",
    "pack_not_begun": "it names an occurrence, and what the store said",
    "helpers": "it has a number",
    "helpers_failed": "its stack is any line's",
    "note_failed": "it has what the store said",
    "put_back_failed": "it has a status and the name of an error of SQS",
    "send_failed": "it has a status, the name of an error of SQS and a number",
}
"""Log lines that no act provokes here, and why that is no risk."""

OTHERS: Final[dict[str, Reader]] = {
    "other lines": "anybody",
    "lines of a terminal": "anybody",
    "streams": "anybody",
    "metrics": "anybody",
    "queue": "anybody",
    "bus": "anybody",
    "raised": "anybody",
    "answer to CloudFormation": "anybody",
    "answer of migrate": "operator",
    "delivery": "anybody",
    "failure hook": "anybody",
}
"""`other lines` have no `action`, or an operation's name. `streams` are stdout and stderr of the
local stack. `raised` is what Lambda logs of a function that fails, and puts into its queue of dead
letters. `delivery` is what a tick sends to dispatch, headers left out. `failure hook` is what
such a one is told.
"""


def _reader_of(route: str) -> Reader:
    users = ("/api/schedules", "/api/actions", "/api/jobs", "/api/mcp", "/api/upcoming")
    if route == "GET /api/flows":
        return "anybody"
    if route.endswith("by-external/{key}/dispatch"):
        return "operator"
    return "owner" if route.partition(" ")[2].startswith(users) else "operator"


OUTLETS: Final[dict[str, Reader]] = {
    **{route: _reader_of(route) for route in ROUTES},
    **{f"duetick {command}": reader for command, reader in COMMANDS.items()},
    **{f"line {action}": "anybody" for action in LINES},
    **OTHERS,
}
