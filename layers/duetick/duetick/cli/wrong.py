"""The lines of an overview that say what is wrong, each with the next command."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

COUNTED: Final = {
    "unindexed": "Enabled schedules without a row, which never fire",
    "stale": "Rows that are not the ones that their schedules require",
    "overdue": "Rows that are due for more than an hour",
}
"""The sentence of an overview for each finding of the hourly count."""

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
    if found.get("restored"):  # a stack of before it was told
        yield _of_restore(found["restored"], where)
    if found["ticks"]["silent"]:
        yield _silence(found["ticks"], where)
    if found["late"]["count"]:
        late, seconds = count_of(found["late"]), found["lateAfter"]
        yield (
            f"Rows due for more than {seconds} s: {late}. No tick takes them, or too few do. "
            f"What did the last ones do? duetick workers{where}"
        )
    yield from _of_ticks(found["ticks"], where)
    yield from _of_lateness(found["ticks"], found["lateAfter"], where)
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
    yield from _of_gone(found["gone"], where)
    yield from _of_count(found["counted"], where)
    yield from _of_verification(found["verified"], where)


def _of_restore(restored: Mapping[str, Any], where: str) -> str:
    return (
        f"The database is a backup of before {restored['witnessed']}, as a tick found at "
        f"{restored['foundAt']}: no tick claims, so nothing fires. What to do? "
        f"duetick recover{_of_stack(where)}"
    )


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
    raised = sum(bool(one["counts"].get("raised")) for one in ticks["last"])
    if raised:
        yield (
            f"Ticks that could not claim, of the last {len(ticks['last'])}: {raised}. The log has "
            f"claim_failed. Why? duetick doctor{where}"
        )
    failed = sum(one["counts"].get("failed", 0) for one in ticks["last"])
    if failed:
        yield (
            f"Deliveries of the last ticks that failed: {failed:,}. An action failed, or dispatch "
            f"was out of reach. Which? duetick occurrences list{where}"
        )


def _of_lateness(ticks: Mapping[str, Any], late_after: int, where: str) -> Iterator[str]:
    """Say how late the last ticks delivered, and how much they left behind."""
    latest = max((one["latenessMilliseconds"] for one in ticks["last"]), default=0)
    left = sum(one["counts"].get("left", 0) for one in ticks["last"][:1])
    if latest > late_after * 1_000 or left:
        behind = f", and the last one left {left:,} behind" if left else ""
        yield (
            f"The last ticks delivered up to {latest // 1_000:,} s late{behind}: actions are slow, "
            f"or too much is due at once. Which? duetick workers{where}"
        )


def _of_gone(gone: Mapping[str, Any] | None, where: str) -> Iterator[str]:
    """Say that schedules name what is not deployed."""
    if gone and gone["count"]:
        named = ", ".join(one["flow"] for one in gone["first"])
        yield (
            f"Active schedules whose flow or action is not deployed: {gone['count']:,} ({named}), "
            f"at {gone['at']}. Their times die until it is. Which? duetick schedules list "
            f"--all-users{where}"
        )


def _of_count(counted: Mapping[str, Any] | None, where: str) -> Iterator[str]:
    """Say what the last hourly count found that no tick meets."""
    of_stack = _of_stack(where)
    for name, said in COUNTED.items():
        if counted and counted.get(name):
            yield f"{said}: {counted[name]:,}, at {counted['at']}. Which? duetick check{of_stack}"


def _of_stack(where: str) -> str:
    """Return what a command needs that reads a store, or asks a stack."""
    return where if "--stack" in where else ""


def _of_verification(verified: Mapping[str, Any], where: str) -> Iterator[str]:
    faults = (verified["faults"] or 0) + verified["faultsSince"]
    if faults:
        yield (
            f"Fire times without an outcome, or outcomes without a fire time: {faults:,}. "
            f"Which? duetick verify{_of_stack(where)}"
        )
