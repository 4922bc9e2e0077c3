"""`duetick doctor`: is everything as it should be? A line for each thing, and how to mend it."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from duetick.cli.asking import add_json, add_place, operators_of, place_of
from duetick.cli.parsing import known_by_its_parser
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import plain, show_many
from duetick.cli.store_address import hide_secrets
from duetick.cli.wrong import COUNTED
from duetick.client import ApiError
from duetick.core.overview import AT_MOST, late_after
from duetick.core.wire import iso
from duetick.domain.errors import DuetickError, NotPermitted, SchemaOutdated, StoreUnavailable
from duetick.domain.expression import next_fire
from duetick.runtime.settings import Settings
from duetick.stores import open_store

if TYPE_CHECKING:
    from duetick.cli.asking import Commands
    from duetick.core.store import Store

SKEW_MS: Final = 2_000
"""The difference of two clocks from which on tokens and leases begin to suffer."""

ZONE: Final = "Europe/Berlin"


class Look(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    said: str


def add_doctor(commands: "Commands") -> None:
    """Add the command."""
    told = "look whether all is as it should be: on a store, a deployed stack, or the local one"
    parser = known_by_its_parser(commands.add_parser("doctor", help=told, description=told))
    parser.add_argument("--store", help="a store that is reached from here")
    add_place(parser)
    add_json(parser)
    parser.set_defaults(command=_doctor)


def _doctor(chosen: argparse.Namespace) -> None:
    if chosen.store and (chosen.stack or chosen.url):
        raise WrongUsage("Either --store, or --stack, or --url.")
    found = [*_machine(), *_about(chosen)]
    if chosen.json:
        show_many([one._asdict() for one in found], (), as_json=True)
    else:
        for one in found:
            print(f"{'ok    ' if one.ok else 'not ok'}  {one.name}: {plain(one.said)}")
    bad = sum(not one.ok for one in found)
    if bad:
        raise CliProblem(f"{bad} of {len(found)} are not ok.")


def _about(chosen: argparse.Namespace) -> Iterator[Look]:
    if chosen.store:
        yield from _store(chosen.store)
    elif chosen.stack:
        yield from _stack(chosen)
    else:
        yield from _local(chosen)


def _machine() -> Iterator[Look]:
    """Look at what every command needs: this program, the zones, the settings of the shell."""
    yield Look("program", True, f"duetick {version('duetick')}, Python {sys.version.split()[0]}")
    yield _try("time zones", _zones)
    if os.environ.get("DUETICK_STORE"):
        yield _try("settings", _settings)


def _zones() -> str:
    """Return the version of the pinned time zone data; raise if it has no zone in it."""
    next_fire("0 9 * * *", ZONE, 0)
    return f"tzdata {version('tzdata')}, from the package, not from the system"


def _settings() -> str:
    chosen = Settings.read()
    return f"DUETICK_STORE is {hide_secrets(chosen.store)}, dispatch by {chosen.dispatch_auth}"


def _try(name: str, look: Callable[[], str], advice: str = "") -> Look:
    """Return what a look says, or why it failed and what to do."""
    try:
        return Look(name, True, look())
    except (CliProblem, DuetickError, ValueError, OSError) as problem:
        return Look(name, False, f"{problem} {advice}".strip())


def _store(address: str) -> Iterator[Look]:
    try:
        opened = open_store(address)
    except DuetickError as problem:
        yield Look("address", False, str(problem))
        return
    yield Look("address", True, hide_secrets(address))
    with closing(opened) as store:
        yield from _look_into(store, address)


def _look_into(store: "Store", address: str) -> Iterator[Look]:
    try:
        store.check_schema()
    except SchemaOutdated as problem:
        yield Look("database", True, "it answers")
        how = f"`duetick migrate --store '{hide_secrets(address)}'` does that"
        yield Look("schema", False, f"{problem} If it says to migrate: {how}.")
        return
    except NotPermitted as problem:
        yield Look("database", False, f"{problem} The user of the address needs more rights.")
        return
    except StoreUnavailable as problem:
        yield Look("database", False, f"{problem} Does it run, and is the address right?")
        return
    yield Look("database", True, "it answers")
    yield Look("schema", True, "as this code needs it")
    yield _try("rights", lambda: _writes(store), "Grant the user what `migrate` grants.")
    yield _skew("clock", store.now(), "the database's clock")
    late = store.index.backlog(store.now() - late_after(store) * 1_000, limit=AT_MOST)
    yield _try("ticks", lambda: _ticks(late, late_after(store)))


def _writes(store: "Store") -> str:
    store.shelf.keep_note("doctor", str(iso(store.now())))
    return "reads and writes"


def _skew(name: str, there: int, whose: str) -> Look:
    """Compare a clock with this machine's."""
    away = there - time.time_ns() // 1_000_000
    if abs(away) < SKEW_MS:
        return Look(
            name, True, f"{whose} differs from this machine's by less than {SKEW_MS // 1000} s"
        )
    how = "Let NTP set both; a wrong clock is refused by AWS, and ends leases early or late."
    return Look(name, False, f"{whose} differs from this machine's by {away / 1_000:+.1f} s. {how}")


def _ticks(late: int, seconds: int) -> str:
    if late:
        raise CliProblem(
            f"{late:,} rows are due for more than {seconds} s, so no tick takes them, or too few. "
            "Does the tick run, and what does its log say?"
        )
    return "nothing is due for long"


def _heard(ticks: Mapping[str, Any]) -> str:
    if not ticks["last"]:
        return "none has reported yet"
    last = ticks["last"][0]["startedAt"]
    if ticks["last"][0]["counts"].get("raised"):
        raise CliProblem(f"the last one, of {last}, could not claim; its log has claim_failed")
    if ticks["silent"]:
        raise CliProblem(
            f"none has ended for {ticks['silentAfter']} s; the last one began {last}. Is its "
            "schedule in EventBridge ENABLED (`aws scheduler list-schedules`), and what does its "
            "log say?"
        )
    return f"the last one began {last}"


def _count(counted: Mapping[str, Any] | None) -> str:
    """Say what the last hourly count found; raise if schedules fire at a wrong time or never."""
    if counted is None:
        return "not counted yet: that comes each hour"
    wrong = ", ".join(f"{counted[name]:,} {name}" for name in COUNTED if counted[name])
    if wrong:
        raise CliProblem(f"{wrong}, at {counted['at']}; `duetick check` names them")
    return f"each schedule has the right one, at {counted['at']}"


def _local(chosen: argparse.Namespace) -> Iterator[Look]:
    place = place_of(chosen)
    yield Look("endpoint", True, place.url)
    known = bool(place.operator)
    yield Look("operator", known, "the operator's token is known" if known else UNKNOWN)
    if place.operator:
        yield from _ask(chosen)


UNKNOWN: Final = (
    "the operator's token is unknown. Run this in the folder of the local stack, or copy the "
    "DUETICK_OPERATOR that it prints"
)


def _ask(chosen: argparse.Namespace) -> Iterator[Look]:
    """Look at what the API answers."""
    try:
        found: Any = operators_of(chosen).overview()
    except (CliProblem, DuetickError) as problem:
        how = "Is the stack up, and may you call execute-api:Invoke there?"
        outdated = isinstance(problem, ApiError) and problem.code == "schema_outdated"
        yield Look("API", False, str(problem) if outdated else f"{problem} {how}")
        return
    yield Look("API", True, "it answers, and so does its database; the schema is the code's")
    there = datetime.fromisoformat(found["at"]).timestamp() * 1_000
    yield _skew("clock", int(there), "the API's clock")
    yield _try("ticks", lambda: _heard(found["ticks"]))
    yield _try("rows due", lambda: _ticks(found["late"]["count"], found["lateAfter"]))
    unreadable = found["unreadable"]["count"]
    broken = f"{unreadable:,} cannot be read; `duetick unreadable` names them"
    yield Look("rows", not unreadable, broken if unreadable else "each can be read")
    yield _try("rows of schedules", lambda: _count(found["counted"]))
    verified = found["verified"]["until"]
    yield Look("verification", True, f"every schedule up to {verified or '(none yet)'}")


def _stack(chosen: argparse.Namespace) -> Iterator[Look]:
    from duetick.cli.deployed import Deployed

    try:
        stack = Deployed.find(chosen.stack)
    except CliProblem as problem:
        yield Look("stack", False, str(problem))
        return
    yield Look("stack", True, f"{chosen.stack}, {stack.outputs['ApiUrl']}")
    yield _try("credentials", stack.who)
    yield _try("dispatch", lambda: _dispatch(stack.variables("TickFunction")))
    yield from _ask(chosen)


def _dispatch(variables: dict[str, str]) -> str:
    """Say how the tick reaches dispatch: the endpoint, and IAM or a secret."""
    url, auth = variables.get("DUETICK_API_URL"), variables.get("DUETICK_DISPATCH_AUTH", "iam")
    if not url:
        raise CliProblem("The tick has no DUETICK_API_URL. Deploy the stack again.")
    if auth == "secret" and not variables.get("DUETICK_DISPATCH_SECRET_ARN"):
        raise CliProblem("The tick dispatches by a secret and has none: set DispatchSecretArn.")
    return f"the tick posts to {url}, by {auth}"
