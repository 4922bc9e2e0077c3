"""`duetick verify`: every fire time of a store has exactly one outcome, or is named."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from duetick.cli.asking import add_json
from duetick.cli.parsing import note_parser
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import say, show_one
from duetick.cli.stores import add_store, open_checked, progress, store_of, take_step
from duetick.core.store import Store
from duetick.core.verify import Progress, fault_json, verified_json, verify
from duetick.core.wire import instant, iso
from duetick.domain.accounts import Fault
from duetick.domain.policies import DAY

if TYPE_CHECKING:
    from duetick.cli.asking import Commands


def add_verify(commands: "Commands") -> None:
    """Add the command."""
    text = "show that every fire time has exactly one outcome"
    parser = note_parser(commands.add_parser("verify", help=text, description=text))
    add_store(parser)
    add_json(parser)
    parser.add_argument("--since", help="such as 2026-12-01T09:00:00Z; default: a day before")
    parser.add_argument("--until", help="such as 2026-12-02T09:00:00Z; default: now")
    parser.add_argument(
        "--covered",
        action="store_true",
        help="verify nothing: tell the progress of the hourly work",
    )
    parser.set_defaults(command=_verify)


def _verify(chosen: argparse.Namespace) -> None:
    if chosen.stack:
        _verify_stack(chosen)
        return
    with open_checked(store_of(chosen)) as store:
        if chosen.covered:
            _show_covered(Progress.load(store), as_json=chosen.json)
        else:
            _show(_verify_store(store, chosen), chosen)


def _verify_stack(chosen: argparse.Namespace) -> None:
    """Let the stack verify, part by part: if the time of a call ends, the next call goes on."""
    if chosen.covered:
        raise WrongUsage("--covered reads a store; of a stack `duetick overview` tells it.")
    whole = take_step(chosen, Step="verify", Since=chosen.since, Until=chosen.until)
    place = whole["place"]
    while place:
        say(f"{whole['schedules']} schedules so far; it goes on …")
        span = {"Since": whole["since"], "Until": whole["until"]}
        part = take_step(chosen, Step="verify", Place=place, **span)
        for name in ("schedules", "times", "under_way", "unverified", "faults", "found"):
            whole[name] += part[name]
        place = part["place"]
    _show(whole, chosen)


def _show(whole: Mapping[str, Any], chosen: argparse.Namespace) -> None:
    if chosen.json:
        show_one(whole, as_json=True)
    else:
        for one in whole["found"]:
            print(_describe_fault(one))
        print(
            f"{whole['schedules']:,} schedules, {whole['times']:,} times from {whole['since']} to "
            f"{whole['until']}; {whole['under_way']:,} are under way."
        )
        if whole["unverified"]:
            rows = f"Rows without a record: {whole['unverified']:,}."
            print(f"{rows} Nothing says which times they had.")
    if whole["faults"]:
        raise CliProblem(f"{whole['faults']:,} faults are above, a line each.")


def _show_covered(found: Progress, *, as_json: bool) -> None:
    if as_json:
        until, ended = iso(found.verified_until), iso(found.finished_at)
        show_one({"until": until, "endedAt": ended, "goingTo": iso(found.until)}, as_json=True)
    else:
        print(_describe(found))


def _describe(found: Progress) -> str:
    """Return the progress of the hourly work in words."""
    if found.verified_until is None:
        told = "The hourly work has not verified every schedule yet."
    else:
        told = (
            f"The hourly work has verified every schedule up to {iso(found.verified_until)}. It "
            f"ended that at {iso(found.finished_at)}."
        )
    if found.until is not None:
        told += f" It is on its way up to {iso(found.until)}: {found.schedules:,} schedules so far."
    return told


def _verify_store(store: Store, chosen: argparse.Namespace) -> Mapping[str, Any]:
    now = store.now()
    until = _time("--until", chosen.until, now)
    since = _time("--since", chosen.since, until - DAY * 1_000)
    if since >= until:
        raise CliProblem(f"--since {iso(since)} is not before --until {iso(until)}.")
    see, faults = progress(), list[dict[str, object]]()

    def show_progress() -> bool:
        see()
        return True

    def tell(schedule: str, found: Fault) -> None:
        faults.append(fault_json(schedule, found))

    whole = verify(store, since, until, now=now, may_go_on=show_progress, tell=tell)
    return verified_json(whole, faults)


def _describe_fault(one: Mapping[str, Any]) -> str:
    span = str(one["first"]) + (f" to {one['last']}" if one["last"] > one["first"] else "")
    times = f", {one['count']:,} times" if one["count"] > 1 else ""
    return f"{one['schedule']}: {one['problem']} at {span}{times}: {one['why']}."


def _time(name: str, text: str | None, default: int) -> int:
    found = instant(name, text)
    return default if found is None else found
