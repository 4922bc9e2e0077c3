"""`duetick backfill …`: make the fire times of a schedule in the past again, as an operator.

It asks the API of a local or a deployed stack; with `--store` it works on a store itself.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from duetick.cli import asking
from duetick.cli.parsing import not_empty, note_parser, whole
from duetick.cli.problem import WrongUsage
from duetick.cli.showing import field, say, show_many, show_one
from duetick.core.backfills import BackfillRequest, Backfills, backfill_json, plan_json
from duetick.core.wire import moment
from duetick.domain.backfilling import MOST_AT_ONCE, MOST_TIMES, MOST_TIMES_EVER
from duetick.domain.identity import split_id

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from duetick.cli.asking import Commands
    from duetick.client import Client
    from duetick.core.store import Store
    from duetick.domain.schedule import Json

_VERBS: Final = {
    "start": "foresee a backfill; with --yes, start it: ticks bring its times",
    "list": "those that stand, and those that have ended",
    "show": "one, and how far it is",
    "stop": "bring no more; the occurrences that were brought go on",
    "continue": "go on where it was stopped",
}

_COLUMNS: Final = (
    field("ID", "id"),
    field("USER", "user"),
    field("KEY", "key"),
    field("FROM", "from"),
    field("TO", "to"),
    field("STATE", "state"),
    field("WAITS FOR", "waitsFor"),
    field("TIMES", "times"),
    field("BROUGHT", "brought"),
    field("UNDER WAY", "underWay"),
    field("FAILED", "failed"),
)


class Door(Protocol):
    """The way to the backfills: a store, or the API of a stack."""

    def start(self, key: str, order: Mapping[str, Json], *, dry_run: bool) -> Mapping[str, Any]: ...
    def all(self) -> list[Mapping[str, Any]]: ...
    def show(self, name: str) -> Mapping[str, Any]: ...
    def stop(self, name: str) -> Mapping[str, Any]: ...
    def go_on(self, name: str) -> Mapping[str, Any]: ...


def add_backfill(commands: Commands) -> None:
    """Add the command with its verbs."""
    noun = commands.add_parser("backfill", help="operators: make fire times of the past again")
    verbs = noun.add_subparsers(required=True, dest="verb")
    for verb, told in _VERBS.items():
        one = note_parser(verbs.add_parser(verb, help=told, description=told))
        if verb == "start":
            _add_start(one)
        elif verb != "list":
            one.add_argument("id", help="the id of the backfill: a list shows it")
        asking.add_place(one)
        one.add_argument("--store", help="work on this store itself, without an API")
        one.add_argument(
            "--user",
            type=not_empty,
            help="the user of the schedules; with --store, all users without it",
        )
        asking.add_why(one)
        asking.add_json(one)
    noun.set_defaults(command=_run)


def _add_start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", help="the key of the schedule; with --flow, the id of a static one")
    parser.add_argument(
        "--flow", type=not_empty, help="with --store: the flow of a static schedule"
    )
    parser.add_argument("--from", dest="since", required=True, help="such as 2026-12-01T00:00:00Z")
    parser.add_argument("--to", dest="until", required=True, help="the end: times before it")
    parser.add_argument(
        "--at-once",
        type=whole(1, MOST_AT_ONCE),
        default=1,
        help="the most that each tick brings, side by side if more than 1; default 1",
    )
    parser.add_argument(
        "--overlap",
        choices=["wait", "allow"],
        help="wait: one after another, so --at-once must be 1; allow: side by side, at most "
        "--at-once; default: allow if --at-once is more than 1",
    )
    parser.add_argument("--all", action="store_true", help="bring also the times that have fired")
    parser.add_argument("--newest-first", action="store_true")
    parser.add_argument(
        "--most",
        type=whole(1, MOST_TIMES_EVER),
        default=MOST_TIMES,
        help="refuse a backfill of more times",
    )
    parser.add_argument(
        "--yes", action="store_true", help="start the backfill; without it a dry run"
    )


def _run(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen), _door(chosen) as door:
        if chosen.verb == "list":
            found = door.all()
            shown = found if chosen.json else map(_flat, found)
            show_many(shown, _COLUMNS, as_json=chosen.json, none="No backfill.")
        elif chosen.verb == "start":
            _start(door, chosen)
        else:
            verbs = {"show": door.show, "stop": door.stop, "continue": door.go_on}
            _show(verbs[chosen.verb](chosen.id), chosen)


def _start(door: Door, chosen: argparse.Namespace) -> None:
    order: dict[str, Json] = {
        "from": chosen.since,
        "to": chosen.until,
        "note": chosen.why,
        "atOnce": chosen.at_once,
        "overlap": chosen.overlap,
        "onlyMissing": not chosen.all,
        "newestFirst": chosen.newest_first,
        "most": chosen.most,
    }
    answer = door.start(chosen.key, order, dry_run=not chosen.yes)
    if chosen.json:
        show_one(answer, as_json=True)
    else:
        _show(answer["started"] or answer["plan"], chosen)
    if answer["plan"]["paused"]:
        say("It waits while the schedule is paused.")
    if held := answer["plan"]["heldBy"]:
        until = held["until"] or "it is resumed"
        say(f"It waits: an operator paused {held['scope']} until {until}.")
    if not chosen.yes:
        say("Nothing was started: it was a dry run. With --yes it is done.")


def _show(found: Mapping[str, Any], chosen: argparse.Namespace) -> None:
    show_one(found if chosen.json else _flat(found), as_json=chosen.json)


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a backfill, or a plan, with the fields of its order beside the others."""
    order: dict[str, Any] = found["order"]
    return {name: value for name, value in found.items() if name != "order"} | order


@contextmanager
def _door(chosen: argparse.Namespace) -> Iterator[Door]:
    if chosen.store is None:
        if not chosen.user:
            raise WrongUsage("--user is needed: whose schedules? With --store a list has all.")
        yield OfStack(asking.operators_of(chosen).of(chosen.user))
        return
    if chosen.stack or chosen.url:
        raise WrongUsage("Either --store, or --stack or --url.")
    from duetick.cli.stores import open_checked

    with open_checked(chosen.store) as store:
        yield OfStore(store, chosen)


class OfStore:
    """The backfills of a store. Each change of one is recorded."""

    def __init__(self, store: Store, chosen: argparse.Namespace) -> None:
        from duetick.cli.stores import whoever

        self._store = store
        self._chosen = chosen
        self._backfills = Backfills(store)
        self._by = whoever()

    def start(self, key: str, order: Mapping[str, Json], *, dry_run: bool) -> Mapping[str, Any]:
        """Foresee a backfill, and start it if that is wanted."""
        chosen = self._chosen
        if chosen.flow is None and chosen.user is None:
            raise WrongUsage("Whose schedule? --user; or --flow of a static one.")
        user, name = (chosen.user, key) if chosen.flow is None else split_id(chosen.flow, key)
        plan = self._backfills.plan(
            BackfillRequest(
                user_id=user,
                key=name,
                since=_time("from", chosen.since),
                until=_time("to", chosen.until),
                at_once=chosen.at_once,
                overlap=chosen.overlap,
                only_missing=not chosen.all,
                newest_first=chosen.newest_first,
                most=chosen.most,
                by=self._by,
                note=str(order["note"]),
            )
        )
        if dry_run:
            return {"plan": plan_json(plan), "started": None}
        with self._record(user, name):
            started = self._backfills.start(plan)
        return {"plan": plan_json(plan), "started": backfill_json(started)}

    @contextmanager
    def _record(self, user_id: str, target: str) -> Iterator[None]:
        from duetick.cli.stores import operating

        verb, why = f"{self._chosen.verb}_backfill", self._chosen.why
        with operating(self._store, verb, why, user_id=user_id or None, target=target):
            yield

    def _record_of(self, name: str) -> AbstractContextManager[None]:
        return self._record(self._backfills.get(name).one.user_id, name)

    def all(self) -> list[Mapping[str, Any]]:
        """Return the backfills of a user, or all."""
        return [backfill_json(one) for one in self._backfills.find(self._chosen.user)]

    def show(self, name: str) -> Mapping[str, Any]:
        """Return one."""
        return backfill_json(self._backfills.get(name))

    def stop(self, name: str) -> Mapping[str, Any]:
        """Stop one."""
        with self._record_of(name):
            return backfill_json(self._backfills.stop(name, self._by))

    def go_on(self, name: str) -> Mapping[str, Any]:
        """Continue one."""
        with self._record_of(name):
            return backfill_json(self._backfills.go_on(name, self._by))


class OfStack:
    """The backfills of one user, over the API of a stack."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def start(self, key: str, order: Mapping[str, Json], *, dry_run: bool) -> Mapping[str, Any]:
        """Foresee a backfill, and start it if that is wanted."""
        return self._client.start_backfill(key, order, dry_run=dry_run)

    def all(self) -> list[Mapping[str, Any]]:
        """Return those of the user."""
        return [*self._client.backfills()["backfills"]]

    def show(self, name: str) -> Mapping[str, Any]:
        """Return one."""
        return self._client.backfill(name)

    def stop(self, name: str) -> Mapping[str, Any]:
        """Stop one."""
        return self._client.stop_backfill(name)

    def go_on(self, name: str) -> Mapping[str, Any]:
        """Continue one."""
        return self._client.continue_backfill(name)


def _time(name: str, text: str) -> int:
    return cast("int", moment(name, text))
