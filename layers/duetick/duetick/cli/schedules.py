"""`duetick schedules …`: the API's operations on schedules, at a terminal."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from duetick.cli import asking
from duetick.cli.asking import add_json, add_limit, add_place, add_why
from duetick.cli.parsing import not_empty, note_parser
from duetick.cli.plain_output import plain
from duetick.cli.problem import WrongUsage
from duetick.cli.putting import add_fields, object_of, put
from duetick.cli.showing import (
    NOMINAL_TIME,
    Column,
    ShownItem,
    field,
    say,
    show_many,
    show_one,
)
from duetick.client import Client, Reply
from duetick.statics import StaticClient

if TYPE_CHECKING:
    from duetick.api.views import AnyScheduleView, ScheduleView
    from duetick.cli.asking import Commands, Options
    from duetick.operators import Operators

Reader: TypeAlias = Client | StaticClient

NEEDS_USER: Final = (
    "mend needs --user: whose schedule? Static ones have no user; `duetick rebuild --yes` mends "
    "them with all others."
)


def add_schedules(commands: "Commands") -> None:
    """Add `schedules` with its verbs. The connection may stand before the verb or after it."""
    noun = commands.add_parser(
        "schedules", help="a user's schedules; for an operator the schedules of any user"
    )
    add_connection(noun)
    verbs = noun.add_subparsers(required=True, dest="verb")
    for verb, told in _VERBS.items():
        one = note_parser(verbs.add_parser(verb, help=told, description=told))
        if verb not in _OF_ALL:
            one.add_argument("key", metavar="outside-id" if verb in _BY_EXTERNAL else None)
        _add_options(verb, one)
        add_connection(one.add_argument_group("who asks whom"), again=True)
    noun.set_defaults(command=_run)


def add_connection(parser: "Options", *, again: bool = False) -> None:
    add_place(parser, again=again)
    default = argparse.SUPPRESS if again else None
    parser.add_argument("--token", default=default, help="a user's token; or set DUETICK_TOKEN")
    parser.add_argument(
        "--user", type=not_empty, default=default, help="operators: the user of the schedules"
    )
    add_why(parser, again=again)


_OF_ALL: Final = frozenset({"list", "actions"})
"""The verbs that take no key."""

_BY_EXTERNAL: Final = frozenset({"by-external", "dispatch"})
"""The verbs that take an outside id."""

_READS_STATIC: Final = frozenset({"get", "history", "explain"})
_OF_STATIC: Final = frozenset({"pause", "resume"}) | _READS_STATIC
"""The verbs that take the flow of a static schedule in place of a user."""

_VERBS: Final = {
    "list": "those that are active or paused; for an operator those of all users, by --all-users",
    "actions": "what may be scheduled, with its policies and those that a schedule may change",
    "get": "one",
    "put": "create a schedule, or change the named fields and leave the rest as it is",
    "pause": "keep it from firing",
    "resume": "let it fire again",
    "run": "fire it now",
    "delete": "delete it; its history stays",
    "mend": "operators: bring its row in line with it, also one that could not be read",
    "by-external": "one, by its outside id; for an operator of any user, by --all-users",
    "dispatch": "machines and operators: run the one with an outside id now",
    "history": "what became of its fire times",
    "upcoming": "its next fire times",
    "explain": "why it fired at a time, or did not, or whether it will",
}


def _add_options(verb: str, parser: argparse.ArgumentParser) -> None:
    if verb == "put":
        add_fields(parser)
    if verb in ("run", "dispatch"):
        parser.add_argument(
            "--idempotency-key",
            help="a key of yours: a repeat with it fires nothing more for a day",
        )
    if verb == "dispatch":
        parser.add_argument("--body", help="a JSON object, for the action to read as ctx.body")
    if verb == "pause":
        parser.add_argument("--note", default="")
        parser.add_argument("--until", help="such as 2026-12-01T09:00:00Z; without it for ever")
    if verb in _OF_STATIC:
        told = "operators: the flow of a static schedule, whose name the key is then"
        parser.add_argument("--flow", type=not_empty, help=told)
    _add_filters(verb, parser)
    if verb in ("list", "history"):
        add_limit(parser)
    if verb != "delete":
        add_json(parser)


def _add_filters(verb: str, parser: argparse.ArgumentParser) -> None:
    if verb in ("list", "by-external"):
        parser.add_argument(
            "--all-users", action="store_true", help="operators: list the schedules of all users"
        )
    if verb == "list":
        parser.add_argument(
            "--state",
            choices=["active", "paused", "done", "all"],
            help="the schedules in that state, or all",
        )
        parser.add_argument("--flow", help="the schedules of that flow")
        parser.add_argument("--label", metavar="NAME=TEXT", help="the schedules with that label")
        parser.add_argument(
            "--text", help="the schedules with this text in key, cron, action or labels"
        )
    if verb == "explain":
        parser.add_argument("--at", help="such as 2026-12-01T09:00:00Z; now without it")
    if verb == "history":
        parser.add_argument("--state", help="the state: such as dead")
        parser.add_argument("--from", dest="since", help="such as 2026-12-01T09:00:00Z")
        parser.add_argument("--to", dest="until", help="the end: times before it")


def _run(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        if chosen.verb == "list" and _means_all(chosen):
            found = asking.operators_of(chosen).schedules(**_sought(chosen))
            _show_list(found, chosen, _OF_USERS)
            return
        if chosen.verb == "by-external" and _means_all(chosen):
            _show(asking.operators_of(chosen).by_external(chosen.key), chosen)
            return
        if chosen.verb == "dispatch":
            _dispatch(chosen)
            return
        if chosen.verb in _OF_STATIC and chosen.flow:
            _ask_static(chosen)
            return
        if chosen.verb == "mend" and not chosen.user:
            raise WrongUsage(NEEDS_USER)
        _DONE[chosen.verb](asking.users_client(chosen), chosen)


def _ask_static(chosen: argparse.Namespace) -> None:
    if chosen.user:
        raise WrongUsage("Either --user or --flow: a static schedule has no user.")
    operators = asking.operators_of(chosen)
    if chosen.verb in _READS_STATIC:
        _READ[chosen.verb](operators.static(chosen.flow), chosen)
    else:
        show_one(_change_static(operators, chosen), as_json=chosen.json)


def _change_static(operators: "Operators", chosen: argparse.Namespace) -> "AnyScheduleView":
    if chosen.verb == "resume":
        return operators.resume_static(chosen.flow, chosen.key)
    return operators.pause_static(chosen.flow, chosen.key, note=chosen.note, until=chosen.until)


def _sought(chosen: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(chosen, name) for name in ("state", "flow", "label", "text")}


def _means_all(chosen: argparse.Namespace) -> bool:
    """Return True if an operator lists the schedules of all users."""
    if chosen.all_users and chosen.user:
        raise WrongUsage("Either --user or --all-users.")
    return bool(chosen.all_users or (chosen.stack and not chosen.user))


def _action(item: ShownItem) -> str:
    return f"{item['flow']}.{item['action']}"


def _state(item: ShownItem) -> str:
    """Return the state, and the pause of a group that holds it."""
    held = item.get("heldBy")
    return f"{item['state']}, held by a pause of {held['scope']}" if held else str(item["state"])


_OF_ONE: Final = (
    field("KEY", "key"),
    Column("STATE", _state),
    field("CRON", "cron"),
    field("TIMEZONE", "timezone"),
    Column("ACTION", _action),
    field("NEXT FIRE", "nextFireAt"),
)
_OF_USERS: Final = (field("USER", "user"), *_OF_ONE)
UPCOMING: Final = (field("UTC", "utc"), field("LOCAL", "local"), field("CLOCKS", "clock"))
HISTORY: Final = (
    NOMINAL_TIME,
    field("STATE", "state"),
    field("REASON", "reason"),
    field("ATTEMPTS", "attempts"),
    field("ERROR", "error"),
    field("OCCURRENCE", "id"),
)
_ACTIONS: Final = (
    Column("ACTION", _action),
    field("USERS", "users"),
    Column("PROMISE", lambda item: item["policies"]["delivery"]),
    Column("MAY CHANGE", lambda item: ", ".join(item["mayChange"])),
)


def _show_list(
    items: Iterable[ShownItem], chosen: argparse.Namespace, columns: Sequence[Column]
) -> None:
    none = (
        "No schedules."
        if any(_sought(chosen).values())
        else "No schedules that are active or paused."
    )
    show_many(items, columns, as_json=chosen.json, limit=chosen.limit, none=none)


def _show_actions(client: Client, chosen: argparse.Namespace) -> None:
    show_many(client.actions(), _ACTIONS, as_json=chosen.json, none="No actions.")


def _show_upcoming(client: Client, chosen: argparse.Namespace) -> None:
    found = client.upcoming(chosen.key)["upcoming"]
    none = "It will not fire again, as things stand."
    show_many(found, UPCOMING, as_json=chosen.json, none=none)


def _show_history(client: Reader, chosen: argparse.Namespace) -> None:
    found = client.history(chosen.key, state=chosen.state, since=chosen.since, until=chosen.until)
    none = "No fire time, as far as the filters go."
    show_many(found, HISTORY, as_json=chosen.json, limit=chosen.limit, none=none)


def _show_explanation(client: Reader, chosen: argparse.Namespace) -> None:
    found = client.explain(chosen.key, at=chosen.at)
    if chosen.json:
        show_one(found, as_json=True)
        return
    for sentence in found["said"]:
        print(plain(sentence))


def _show(reply: "Reply[ScheduleView]", chosen: argparse.Namespace) -> None:
    show_one(reply.body, as_json=chosen.json)
    if reply.warning:
        say(f"{chosen.key} {reply.warning}.")


def _pause(client: Client, chosen: argparse.Namespace) -> None:
    _show(client.pause(chosen.key, note=chosen.note, until=chosen.until), chosen)


def _fire(client: Client, chosen: argparse.Namespace) -> None:
    ran = client.run(chosen.key, idempotency_key=chosen.idempotency_key)
    show_one(ran, as_json=chosen.json)


def _dispatch(chosen: argparse.Namespace) -> None:
    if chosen.user:
        raise WrongUsage("dispatch takes an outside id, which is one name across all users.")
    body = object_of("--body", chosen.body) if chosen.body else None
    once = chosen.idempotency_key
    ran = asking.operators_of(chosen).dispatch(chosen.key, body, idempotency_key=once)
    show_one(ran, as_json=chosen.json)


_READ: Final[Mapping[str, Callable[[Reader, argparse.Namespace], None]]] = {
    "get": lambda client, one: _show(client.get(one.key), one),
    "explain": _show_explanation,
    "history": _show_history,
}
"""Each verb that reads a schedule of a user, or a static one."""

_DONE: Final[Mapping[str, Callable[[Client, argparse.Namespace], None]]] = {
    **_READ,
    "list": lambda client, one: _show_list(client.list(**_sought(one)), one, _OF_ONE),
    "actions": _show_actions,
    "by-external": lambda client, one: _show(client.by_external(one.key), one),
    "put": lambda client, one: _show(put(client, one), one),
    "pause": _pause,
    "resume": lambda client, one: _show(client.resume(one.key), one),
    "run": _fire,
    "delete": lambda client, one: client.delete(one.key),
    "mend": lambda client, one: show_one(client.mend(one.key), as_json=one.json),
    "upcoming": _show_upcoming,
}
"""Each verb: what it asks, and how the answer is shown."""
