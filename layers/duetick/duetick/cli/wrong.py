"""The lines of an overview that say what is wrong, each with the next command."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

NOTHING: Final = "Nothing is wrong, as far as these numbers tell."


def wrong_lines(found: Mapping[str, Any], where: str) -> list[str]:
    """Return what is wrong, the worst first, with the command that shows more. `where` is what the
    command needs to ask the same place.
    """
    lines = list(_wrong(found, where))
    return [f"WRONG  {line}" for line in lines] or [NOTHING]


def count_of(found: Mapping[str, Any]) -> str:
    """Return a count as text; it may be more."""
    return f"{found['count']:,}" + (" or more" if found["more"] else "")


def _wrong(found: Mapping[str, Any], where: str) -> Iterator[str]:
    if found["ticks"]["silent"]:
        yield _silence(found["ticks"], where)
    if found["late"]["count"]:
        late, seconds = count_of(found["late"]), found["lateAfter"]
        yield (
            f"Rows due for more than {seconds} s: {late}. No tick takes them, or too few do. "
            f"What did the last ones do? duetick workers{where}"
        )
    yield from _of_ticks(found["ticks"], where)
    if found["dead"]["count"]:
        yield (
            f"Occurrences that died in the last day: {count_of(found['dead'])}. "
            f"Why? duetick occurrences list --state dead{where}"
        )
    if found["unreadable"]["count"]:
        yield (
            f"Rows that cannot be read: {count_of(found['unreadable'])}. They do not fire. "
            f"Which? duetick unreadable{where}"
        )
    yield from _of_verification(found["verified"], where)


def _silence(ticks: Mapping[str, Any], where: str) -> str:
    """Say since when no tick has ended."""
    minutes = f"{ticks['silentAfter'] // 60} minutes"
    last = next(iter(ticks["last"]), None)
    since = "and none is known" if last is None else f"the last one began {last['startedAt']}"
    return f"No tick has ended for {minutes}, {since}: nothing fires. Why? duetick doctor{where}"


def _of_ticks(ticks: Mapping[str, Any], where: str) -> Iterator[str]:
    """Say what the last ticks had trouble with."""
    lost = sum(one["state"] == "lost" for one in ticks["last"])
    if lost:
        yield (
            f"Ticks that never ended, of the last {len(ticks['last'])}: {lost}. What they had "
            f"claimed comes back. Which? duetick workers{where}"
        )
    failed = sum(one["counts"].get("failed", 0) for one in ticks["last"])
    if failed:
        yield (
            f"Deliveries of the last ticks that failed: {failed:,}. Dispatch refused them, or was "
            f"out of reach. What waits? duetick occurrences list --state retrying{where}"
        )


def _of_verification(verified: Mapping[str, Any], where: str) -> Iterator[str]:
    faults = (verified["faults"] or 0) + verified["faultsSince"]
    of_stack = where if "--stack" in where else ""  # verify reads a store, or asks a stack
    if faults:
        yield (
            f"Fire times without an outcome, or outcomes without a fire time: {faults:,}. "
            f"Which? duetick verify{of_stack}"
        )
