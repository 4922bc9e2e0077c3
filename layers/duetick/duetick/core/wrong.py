"""Faults, as an overview shows them: the worst first, each in a sentence."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "restored",
    "silent",
    "late",
    "ticks_lost",
    "ticks_raised",
    "deliveries_failed",
    "lateness",
    "dead",
    "unreadable",
    "gone",
    "unindexed",
    "stale",
    "overdue",
    "unaccounted",
    "bells",
]
"""The kind of what is wrong: it decides where to look next."""

COUNTED: Final[Mapping[Kind, str]] = {
    "unindexed": "Enabled schedules without a row, which never fire",
    "stale": "Rows that are not the ones that their schedules require",
    "overdue": "Rows that are due for more than an hour",
}
"""The sentence of an overview for each finding of the hourly count."""


class Wrong(NamedTuple):
    """One thing that is wrong."""

    kind: Kind
    said: str


def wrong_in(found: Mapping[str, Any]) -> Iterator[Wrong]:
    """Yield the faults in an overview, the worst first."""
    if found.get("restored"):  # a stack of before it was told
        yield Wrong("restored", _restore(found["restored"]))
    if found["ticks"]["silent"]:
        yield Wrong("silent", _silence(found["ticks"]))
    if found["late"]["count"]:
        late, seconds = count_of(found["late"]), found["lateAfter"]
        said = f"Rows and jobs due for more than {seconds} s: {late}."
        yield Wrong("late", f"{said} No tick takes them, or too few do.")
    yield from _of_ticks(found["ticks"])
    yield from _of_lateness(found["ticks"], found["lateAfter"])
    if found["dead"]["count"]:
        said = f"Occurrences that died in the last day: {count_of(found['dead'])}."
        yield Wrong("dead", said)
    if found["unreadable"]["count"]:
        said = f"Rows that cannot be read: {count_of(found['unreadable'])}. They do not fire."
        yield Wrong("unreadable", said)
    yield from _of_gone(found["gone"])
    yield from _of_count(found["counted"])
    yield from _of_verification(found["verified"])
    yield from _of_bells(found.get("bells"))  # a stack of before it was told has none


def count_of(found: Mapping[str, Any]) -> str:
    """Return a count as text; it may be more."""
    return f"{found['count']:,}" + (" or more" if found["more"] else "")


def _restore(restored: Mapping[str, Any]) -> str:
    return (
        f"The database is a backup of before {restored['witnessed']}, as a tick found at "
        f"{restored['foundAt']}: no tick claims, so nothing fires."
    )


def _silence(ticks: Mapping[str, Any]) -> str:
    """Say since when no tick has ended."""
    minutes = f"{ticks['silentAfter'] // 60} minutes"
    last = next(iter(ticks["last"]), None)
    since = "and none is known" if last is None else f"the last one began {last['startedAt']}"
    return f"No tick has ended for {minutes}, {since}: nothing fires."


def _of_ticks(ticks: Mapping[str, Any]) -> Iterator[Wrong]:
    """Say the troubles of the last ticks."""
    lost = sum(one["state"] == "lost" for one in ticks["last"])
    if lost:
        said = f"Ticks that never ended, of the last {len(ticks['last'])}: {lost}. What they had "
        yield Wrong("ticks_lost", f"{said}claimed comes back.")
    raised = sum(bool(one["counts"].get("raised")) for one in ticks["last"])
    if raised:
        said = f"Ticks that could not claim, of the last {len(ticks['last'])}: {raised}. The log "
        yield Wrong("ticks_raised", f"{said}has claim_failed.")
    failed = sum(one["counts"].get("failed", 0) for one in ticks["last"])
    if failed:
        said = f"Deliveries of the last ticks that failed: {failed:,}. An action failed, or "
        yield Wrong("deliveries_failed", f"{said}dispatch was out of reach.")


def _of_lateness(ticks: Mapping[str, Any], late_after: int) -> Iterator[Wrong]:
    """Name the lateness of the last ticks, and the number that they left behind."""
    latest = max((one["latenessMilliseconds"] for one in ticks["last"]), default=0)
    left = sum(one["counts"].get("left", 0) for one in ticks["last"][:1])
    if latest > late_after * 1_000 or left:
        behind = f", and the last one left {left:,} behind" if left else ""
        said = f"The last ticks delivered up to {latest // 1_000:,} s late{behind}: actions are "
        yield Wrong("lateness", f"{said}slow, or too much is due at once.")


def _of_gone(gone: Mapping[str, Any] | None) -> Iterator[Wrong]:
    """Say that schedules name a flow or an action that is not deployed."""
    if gone and gone["count"]:
        named = ", ".join(one["flow"] for one in gone["first"])
        said = f"Active schedules whose flow or action is not deployed: {gone['count']:,} ({named})"
        yield Wrong("gone", f"{said}, at {gone['at']}. Their times die until it is.")


def _of_count(counted: Mapping[str, Any] | None) -> Iterator[Wrong]:
    """Name the faults that the last hourly count found and no tick meets."""
    for name, said in COUNTED.items():
        if counted and counted.get(name):
            yield Wrong(name, f"{said}: {counted[name]:,}, at {counted['at']}.")


def _of_verification(verified: Mapping[str, Any]) -> Iterator[Wrong]:
    faults = (verified["faults"] or 0) + verified["faultsSince"]
    if faults:
        said = f"Fire times without an outcome, or outcomes without a fire time: {faults:,}."
        yield Wrong("unaccounted", said)


def _of_bells(bells: Mapping[str, Any] | None) -> Iterator[Wrong]:
    """Say that bells have been pending for too long."""
    if bells and bells["areLate"]:
        said = f"Bells of EventBridge that are pending: {count_of(bells['pending'])}, the first "
        yield Wrong("bells", f"{said}since {bells['since']}. Their rows fire up to an hour late.")
