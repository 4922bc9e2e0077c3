"""`duetick doctor`: a line for each thing that has to be right, and what mends it."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from duetick.cli import local_note
from duetick.cli.asking import add_json, add_place, operators_of, place_of
from duetick.cli.parsing import note_parser
from duetick.cli.plain_output import plain
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import show_many
from duetick.cli.store_address import check_is_there, hide_secrets
from duetick.client import ApiError
from duetick.core.overview import overview
from duetick.core.wire import iso
from duetick.core.wrong import COUNTED, count_of
from duetick.domain.errors import DuetickError, NotPermitted, SchemaOutdated, StoreUnavailable
from duetick.domain.expression import next_fire
from duetick.runtime.settings import Settings
from duetick.stores import open_store
from duetick.version import VERSION

if TYPE_CHECKING:
    from duetick.cli.asking import Commands
    from duetick.core.store import Store

SKEW_MS: Final = 2_000
"""The difference of two clocks from which on tokens and leases begin to suffer."""

ZONE: Final = "Europe/Berlin"


class Asks(NamedTuple):
    """The options that lead the next command to the same place: its API, or its store."""

    api: str
    store: str


class Look(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    said: str


def add_doctor(commands: "Commands") -> None:
    """Add the command."""
    told = "look whether all is as it should be: on a store, a deployed stack, or the local one"
    parser = note_parser(commands.add_parser("doctor", help=told, description=told))
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
    """Look at the needs of every command: this program, the zones, the settings of the shell."""
    yield Look("program", True, f"duetick {VERSION}, Python {sys.version.split()[0]}")
    yield _try("time zones", _zones)
    if os.environ.get("DUETICK_STORE"):
        yield _try("settings", _settings)


def _zones() -> str:
    """Return the version of the pinned time zone data; raise if it has no zone in it."""
    from importlib.metadata import version

    next_fire("0 9 * * *", ZONE, 0)
    return f"tzdata {version('tzdata')}, from the package, not from the system"


def _settings() -> str:
    chosen = Settings.read()
    return f"DUETICK_STORE is {hide_secrets(chosen.store)}, dispatch by {chosen.dispatch_auth}"


def _try(name: str, look: Callable[[], str], advice: str = "") -> Look:
    """Return the result of a look, or the reason of its failure and what to do."""
    try:
        return Look(name, True, look())
    except (CliProblem, DuetickError, ValueError, OSError) as problem:
        return Look(name, False, f"{problem} {advice}".strip())


def _store(address: str) -> Iterator[Look]:
    try:
        check_is_there(address)
        opened = open_store(address)
    except (CliProblem, DuetickError) as problem:
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
    is_empty = next(iter(store.shelf.every_book()), None) is None
    found = overview(store, store.now())
    yield from _look_at(found, _asks_of_store(address), is_empty=is_empty)


def _asks_of_store(address: str) -> Asks:
    """Return the options for the next commands: those of the API need the stack of this store.

    A local stack that runs here is found without a name.
    """
    is_here = any(one.store == address for one in local_note.find(Path.cwd()))
    api = "" if is_here else " --stack NAME"
    return Asks(api, f" --store {shlex.quote(hide_secrets(address))}")


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


def _look_at(found: Mapping[str, Any], asks: Asks, *, is_empty: bool = False) -> Iterator[Look]:
    """Look at the parts of an overview, the causes before their effects."""
    yield _try("backup", lambda: _check_restore(found.get("restored"), asks))
    yield _try("ticks", lambda: _check_tick(found["ticks"], found["at"], asks, is_empty=is_empty))
    yield _try("rows due", lambda: _due(found, asks))
    yield _try("rows", lambda: _read(found["unreadable"], asks))
    yield _try("rows of schedules", lambda: _count(found["counted"], asks))
    yield _try("flows", lambda: _check_flows(found["gone"], asks))
    yield _try("deaths", lambda: _check_dead(found["dead"], asks))
    yield _try("verification", lambda: _check_verification(found["verified"], asks))
    bells = found.get("bells")
    if bells:
        yield _try("bells", lambda: _check_bells(bells))


def _check_bells(bells: Mapping[str, Any]) -> str:
    """Return the number of pending bells in words. Raise if one has been pending for two hours."""
    if bells["areLate"]:
        raise CliProblem(
            f"{count_of(bells['pending'])} are pending, the first since {bells['since']}: their "
            "rows fire up to an hour late. The logs have bell_failed, with the reason"
        )
    return f"{count_of(bells['pending'])} are pending; a tick brings these in step"


def _check_restore(restored: Mapping[str, Any] | None, asks: Asks) -> str:
    """Raise if the database is a backup that nobody has recovered."""
    if restored:
        raise CliProblem(
            f"the database is one of before {restored['witnessed']}, as a tick found at "
            f"{restored['foundAt']}: no tick claims, so nothing fires. `duetick recover"
            f"{asks.store}` is the dry run of what mends it"
        )
    return "no tick has found that the database was restored from one"


def _check_tick(ticks: Mapping[str, Any], at: str, asks: Asks, *, is_empty: bool) -> str:
    """Return the age of the last tick's report in words. Raise if it is too old, or could not
    claim.
    """
    if not ticks["last"]:
        if is_empty:
            return "none has reported, and there is no schedule yet"
        raise CliProblem(
            "none has reported in eight days, so nothing fires. The first one comes at the next "
            f"full minute after a start; if none does: {START_IT}"
        )
    last = ticks["last"][0]
    if last["counts"].get("raised"):
        raise CliProblem(
            f"the last one, of {last['startedAt']}, could not claim. Its log has claim_failed; "
            f"`duetick workers{asks.api}` shows those before it"
        )
    told = f"the last one began {_since(last['startedAt'], at)}"
    if last["endedAt"]:
        told += f" and ended {_since(last['endedAt'], at)}"
    if ticks["silent"]:
        raise CliProblem(f"none has ended for {ticks['silentAfter']} s; {told}. {START_IT}")
    return told


START_IT: Final = (
    "Is its schedule in EventBridge ENABLED (`aws scheduler list-schedules --name-prefix "
    "duetick-tick`), or does `make run` run? Then what does its log say?"
)


def _since(then: str, now: str) -> str:
    """Return the age of an instant in words."""
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds()
    return f"{seconds:,.0f} s ago"


def _due(found: Mapping[str, Any], asks: Asks) -> str:
    if found["late"]["count"]:
        raise CliProblem(
            f"{count_of(found['late'])} are due for more than {found['lateAfter']} s: no tick "
            f"takes them, or too few do. `duetick workers{asks.api}` shows what the last ones did"
        )
    return "nothing is due for long"


def _read(unreadable: Mapping[str, Any], asks: Asks) -> str:
    if unreadable["count"]:
        raise CliProblem(
            f"{count_of(unreadable)} cannot be read, and their schedules do not fire. `duetick "
            f"unreadable{asks.api}` names them; once one can be read, `duetick schedules mend KEY "
            f"--user USER{asks.api}` brings it back"
        )
    return "each can be read"


def _count(counted: Mapping[str, Any] | None, asks: Asks) -> str:
    """Return the last hourly count in words. Raise if schedules fire at a wrong time or never."""
    if counted is None:
        return f"not counted yet: that comes each hour, and `duetick check{asks.store}` does it now"
    wrong = ", ".join(f"{counted[name]:,} {name}" for name in COUNTED if counted[name])
    if wrong:
        raise CliProblem(
            f"{wrong}, at {counted['at']}. `duetick check{asks.store}` names them, and `duetick "
            f"rebuild --yes{asks.store}` mends all but those that are overdue"
        )
    return f"each schedule has the right one, at {counted['at']}"


def _check_flows(gone: Mapping[str, Any] | None, asks: Asks) -> str:
    """Say whether the flow of each active schedule is deployed, as it was last counted."""
    if gone is None:
        return "not counted yet: each deployment and each hour does"
    if gone["count"]:
        most = ", ".join(f"{one['flow']} {one['schedules']:,}" for one in gone["first"])
        flow = gone["first"][0]["flow"].partition("/")[0]
        raise CliProblem(
            f"{gone['count']:,} active schedules name a flow or an action that is not deployed "
            f"({most}), at {gone['at']}: each of their times dies. Deploy it. Meanwhile `duetick "
            f"pause flow {shlex.quote(flow)}{asks.api}` skips their times instead"
        )
    return f"each active schedule has its flow, at {gone['at']}"


def _check_dead(dead: Mapping[str, Any], asks: Asks) -> str:
    if dead["count"]:
        raise CliProblem(
            f"{count_of(dead)} in the last day. `duetick occurrences list --state dead{asks.api}` "
            "says why; once the cause is mended, `duetick occurrences retry --state dead"
            f"{asks.api}` is the dry run of another attempt"
        )
    return "none in the last day"


def _check_verification(verified: Mapping[str, Any], asks: Asks) -> str:
    faults = (verified["faults"] or 0) + verified["faultsSince"]
    if faults:
        raise CliProblem(
            f"{faults:,} times do not add up. `duetick verify{asks.store}` names those of the last "
            "day"
        )
    until = verified["until"]
    return f"every schedule up to {until}" if until else "the hourly work has not verified all yet"


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
    """Look at the answers of the API."""
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
    yield from _look_at(found, _asks_of_api(chosen))


def _asks_of_api(chosen: argparse.Namespace) -> Asks:
    """Return the options of the commands that go on. One that reads a store takes no address of an
    API: without a stack it finds the store of the local one.
    """
    stack = f" --stack {shlex.quote(chosen.stack)}" if chosen.stack else ""
    return Asks(stack or (f" --url {shlex.quote(chosen.url)}" if chosen.url else ""), stack)


def _stack(chosen: argparse.Namespace) -> Iterator[Look]:
    from duetick.cli.deployed import Deployed

    try:
        stack = Deployed.find(chosen.stack)
    except CliProblem as problem:
        yield Look("stack", False, str(problem))
        return
    yield Look("stack", True, f"{stack.name}, {stack.outputs['ApiUrl']}")
    yield _try("version", lambda: _version(stack.outputs.get("Version", "unknown")))
    yield _try("credentials", stack.who)
    yield _try("dispatch", lambda: _dispatch(stack.variables("TickFunction")))
    yield from _ask(chosen)


def _version(deployed: str) -> str:
    if deployed != VERSION:
        raise CliProblem(
            f"the stack is of Duetick {deployed}, and this command of {VERSION}: what one of them "
            "does not know yet, the other may refuse. Deploy the newer one, or install its command"
        )
    return f"the stack and this command are of Duetick {VERSION}"


def _dispatch(variables: dict[str, str]) -> str:
    """Return the way of the tick to dispatch in words: the endpoint, and IAM or a secret."""
    url, auth = variables.get("DUETICK_API_URL"), variables.get("DUETICK_DISPATCH_AUTH", "iam")
    if not url:
        raise CliProblem("The tick has no DUETICK_API_URL. Deploy the stack again.")
    if auth == "secret" and not variables.get("DUETICK_DISPATCH_SECRET_ARN"):
        raise CliProblem("The tick dispatches by a secret and has none: set DispatchSecretArn.")
    return f"the tick posts to {url}, by {auth}"
