"""`duetick overview`, `operations`, `unreadable` and `users`: operators' questions about all
users.
"""

import argparse
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from duetick.cli import asking
from duetick.cli.asking import add_json, add_limit, add_place, add_why, operators_of
from duetick.cli.limits import in_words
from duetick.cli.parsing import not_empty, note_parser
from duetick.cli.plain_output import plain
from duetick.cli.problem import WrongUsage
from duetick.cli.showing import field, show_many, show_one, table, terminal_width
from duetick.cli.wrong import wrong_lines
from duetick.core.wrong import count_of

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

SAID: Final = {
    "due": "rows and jobs whose time has come",
    "late": "those due for longer than two ticks: no tick takes them, or too few do",
    "queued": "occurrences handed on, not begun",
    "running": "occurrences that run",
    "scheduled": "occurrences claimed ahead of their time, and jobs that wait for theirs",
    "retrying": "occurrences that wait for another attempt",
    "dead": "occurrences of the last day that are dead",
    "unreadable": "rows whose cron or zone cannot be read",
}
"""The meaning of each count."""

TICK_TITLES: Final = ("TICK", "STATE", "CLAIMED", "DELIVERED", "FAILED", "LATE MS")

_OPERATIONS: Final = (
    field("WHEN", "at"),
    field("WHO", "who"),
    field("VERB", "verb"),
    field("USER", "user"),
    field("TARGET", "target"),
    field("OUTCOME", "outcome"),
    field("WHY", "why"),
)
_UNREADABLE: Final = (
    field("USER", "user"),
    field("KEY", "key"),
    field("SINCE", "since"),
    field("CRON", "cron"),
    field("TIMEZONE", "timezone"),
    field("ERROR", "error"),
)


def add_overview(commands: "Commands") -> None:
    """Add `overview`, `operations`, `unreadable` and `users`."""
    overview = _add(commands, "overview", "operators: what is wrong, and what to do next")
    overview.set_defaults(command=_overview)
    operations = _add(
        commands, "operations", "operators: the operations of operators, the newest first"
    )
    operations.add_argument("--user", type=not_empty, help="the operations about this user")
    operations.add_argument("--who", help="the operations of operators with this text in the name")
    add_limit(operations)
    operations.set_defaults(command=_operations)
    unreadable = _add(
        commands,
        "unreadable",
        "operators: rows whose cron or zone cannot be read; `schedules mend` mends one",
    )
    add_limit(unreadable)
    unreadable.set_defaults(command=_unreadable)
    users = _add(commands, "users", "operators: all data of a user, exported or erased")
    users.add_argument("verb", choices=["export", "erase"])
    users.add_argument("user")
    users.add_argument("--yes", action="store_true", help="erase: do it; it cannot be undone")
    add_why(users)
    users.set_defaults(command=_users)


def _add(commands: "Commands", name: str, told: str) -> argparse.ArgumentParser:
    parser = note_parser(commands.add_parser(name, help=told, description=told))
    add_place(parser)
    add_json(parser)
    return parser


def _overview(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        found = operators_of(chosen).overview()
    if chosen.json:
        show_one(found, as_json=True)
        return
    for line in _overview_lines(found, _where(chosen)):
        print(plain(line))


def _where(chosen: argparse.Namespace) -> str:
    """Return the options that lead a command to the same place."""
    named = (("--stack", chosen.stack), ("--url", chosen.url))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in named if value)


def _overview_lines(found: Mapping[str, Any], where: str) -> Iterator[str]:
    yield from wrong_lines(found, where)
    yield from _of_orders(found, where)
    yield ""
    rows = [[name, count_of(found[name]), said] for name, said in SAID.items()]
    yield from table(["", "COUNT", f"AT {found['at']}"], rows, terminal_width())
    yield ""
    ticks = found["ticks"]["last"]
    if ticks:
        yield from table(TICK_TITLES, list(map(_tick_row, ticks)), terminal_width())
    else:
        yield "Ticks: none has reported in eight days."
    yield ""
    yield from _of_the_hour(found["counted"], found["verified"])
    yield from _of_bells(found.get("bells"))
    yield from _of_failing(found.get("failing"))


def _of_bells(bells: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the number of pending bells, if bells ring."""
    if bells:
        since = f", the first since {bells['since']}" if bells["since"] else ""
        yield f"Bells that are pending in EventBridge: {count_of(bells['pending'])}{since}."


def _of_failing(failing: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the flows and the users of the newest dead."""
    if not failing or not failing["of"]:  # nothing died, or a stack of before it was told
        return
    flows = ", ".join(f"{one['flow']} {one['dead']:,}" for one in failing["flows"])
    users = ", ".join(f"{one['user'] or 'static'} {one['dead']:,}" for one in failing["users"])
    yield f"Of the newest {failing['of']:,} dead of the last day, by flow: {flows}."
    yield f"By user: {users}."


def _tick_row(tick: Mapping[str, Any]) -> list[str]:
    numbers = [tick["counts"].get(name, 0) for name in ("claimed", "delivered", "failed")]
    shown = [f"{number:,}" for number in [*numbers, tick["latenessMilliseconds"]]]
    state = "raised" if tick["counts"].get("raised") else tick["state"]
    return [tick["startedAt"], state, *shown]


def _of_orders(found: Mapping[str, Any], where: str) -> Iterator[str]:
    """Yield the standing orders of operators, and the command that shows all."""
    for one in found["pauses"]["first"]:
        note = f": {one['note']}" if one["note"] else ""
        until = one["until"] or "a resume"
        yield f"Paused: {one['scope']} from {one['since']} until {until}, by {one['by']}{note}."
    yield from _rest(found["pauses"], f"duetick pauses{where}")
    for one in found["limits"]["first"]:
        full = f"; no place until {one['fullUntil']}, or sooner" if one["fullUntil"] else ""
        yield f"Limited: {in_words(one)}, by {one['by']}; {one['running']:,} run{full}."
    yield from _rest(found["limits"], f"duetick limits{where}")
    for one in found["backfills"]["first"]:
        order = one["order"]
        waits = f", waits: {one['waitsFor']}" if one["waitsFor"] else ""
        yield (
            f"Backfill {one['id']} of {order['user']}/{order['key']}: {one['state']}{waits}; "
            f"{one['brought'] + one['firedBefore']:,} of {order['times']:,} times, "
            f"{one['failed']:,} failed."
        )
    yield from _rest(found["backfills"], f"duetick backfill list{where} --user …")


def _rest(found: Mapping[str, Any], command: str) -> Iterator[str]:
    others = found["count"] - len(found["first"])
    if others:
        yield f"… and {others:,} more: {command}"


def _of_the_hour(counted: Mapping[str, Any] | None, verified: Mapping[str, Any]) -> Iterator[str]:
    """Yield the findings of the hourly work."""
    if counted:
        yield (
            f"Schedules at {counted['at']}: {counted['active']:,} active, {counted['paused']:,} "
            f"paused, {counted['done']:,} done (the last hourly count)."
        )
    else:
        yield "Schedules: no hourly count has been made yet."
    if not verified["until"]:
        yield "Verified: the hourly work has not verified every schedule yet."
        return
    faults = verified["faults"]
    found = "" if faults is None else f"; {faults:,} faults" if faults else "; no fault"
    yield f"Verified: every schedule up to {verified['until']}, ended {verified['endedAt']}{found}."


def _operations(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        found = operators_of(chosen).operations(user=chosen.user, who=chosen.who)
        none = "No operation, as far as the filters go."
        show_many(found, _OPERATIONS, as_json=chosen.json, limit=chosen.limit, none=none)


def _unreadable(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        found = operators_of(chosen).unreadable()
        none = "Every row can be read."
        show_many(found, _UNREADABLE, as_json=chosen.json, limit=chosen.limit, none=none)


def _users(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        client = operators_of(chosen).of(chosen.user)
        if chosen.verb == "export":
            show_one(client.export(), as_json=True)
            return
        if not chosen.yes:
            raise WrongUsage(
                f"This erases all data of {chosen.user!r}, the history too, for good. Look at it "
                f"with `users export {chosen.user}`, then repeat this with --yes."
            )
        show_one(client.erase(), as_json=chosen.json)
