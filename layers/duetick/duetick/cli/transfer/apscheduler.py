"""APScheduler: the jobs of version 3 and the schedules of version 4, as their stores keep them.

Version 3 keeps each job as a pickle. Version 4 keeps triggers and arguments as pickles, or as JSON
or CBOR if its store was told so. Pickles are read by `pickles`, which runs nothing of them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, Final

from duetick.cli.transfer.apscheduler_triggers import object_of, timings, zone_name
from duetick.cli.transfer.items import NotReadable, RefusedItem, SourceItem, SourcePart
from duetick.cli.transfer.pickles import NotAPickle, StandIn, read_pickle
from duetick.domain.schedule import Json

QUERY_3: Final = "SELECT id, job_state FROM {table}"
QUERY_4: Final = (
    "SELECT s.*, t.func FROM {schema}schedules s LEFT JOIN {schema}tasks t ON t.id = s.task_id"
)
TABLE_3: Final = "apscheduler_jobs"

MAGIC: Final = "_apscheduler_json"
"""The key by which version 4 marks an object in JSON, unless its serializer was told another."""

UNCHOSEN: Final = 1
"""The seconds by which a job of version 3 may be late, if nobody chose others."""

USUAL_GRACE: Final = 150
"""The seconds for which a time is on time here, whatever it is there."""
LONGEST_SPREAD: Final = 86_400
A_STORE: Final = "a store of APScheduler 3 or 4"

ODD: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The problems with a state whose parts have other forms than those that APScheduler writes."""

DEEPEST: Final = 50


def read_rows(name: str, rows: Iterable[Mapping[str, Any]], now: int) -> Iterator[SourcePart]:
    """Yield the items of the rows of a job store (3) or a data store (4), as of `now`."""
    for row in rows:
        place = f"{name} {row.get('id')}"
        try:
            yield from _items(place, row, now)
        except NotReadable as problem:
            yield RefusedItem(place, str(row.get("id")), problem.why, problem.instead)
        except NotAPickle as problem:
            why = f"what its store has of it cannot be read ({problem})"
            yield RefusedItem(place, str(row.get("id")), why, A_STORE)
        except ODD as problem:
            why = f"a part of it has another form ({type(problem).__name__}: {problem})"
            yield RefusedItem(place, str(row.get("id")), why, A_STORE)


def _items(place: str, row: Mapping[str, Any], now: int) -> Iterator[SourcePart]:
    job = _job_of_3(row) if "job_state" in row else _job_of_4(row)
    notes: list[str] = []
    policies = _policies(job, notes)
    found = timings(job["trigger"], now)
    for number, (timing, told) in enumerate(found, 1):
        whole = job["id"] if len(found) == 1 else f"{job['id']}/{number}"
        text = f"{timing.cron} {timing.timezone or ''}".strip()
        more = [f"part {number} of {len(found)} of its trigger"] if len(found) > 1 else []
        fires = replace(timing, policies={**policies, **timing.policies}, enabled=job["enabled"])
        facts, missing = _facts(job)
        yield SourceItem(place, text, whole, fires, facts, (*notes, *told, *more, *missing))


def _job_of_3(row: Mapping[str, Any]) -> dict[str, Any]:
    state = read_pickle(_bytes(row["job_state"]))
    if not isinstance(state, dict) or "trigger" not in state:
        raise NotReadable("its state is none of APScheduler 3", "the table of its job store")
    return {
        "id": str(state.get("id") or row.get("id")),
        "func": str(state.get("func")),
        "name": state.get("name"),
        "args": state.get("args") or (),
        "kwargs": state.get("kwargs") or {},
        "trigger": state["trigger"],
        "grace": state.get("misfire_grace_time"),
        "missed": "latest" if state.get("coalesce", True) else "all",
        "at_once": state.get("max_instances", 1),
        "enabled": state.get("next_run_time") is not None,
        "jitter": None,
    }


def _job_of_4(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": str(row.get("id")),
        "func": str(row.get("func") or row.get("task_id")),
        "name": row.get("task_id"),
        "args": _deserialize(row.get("args")) or (),
        "kwargs": _deserialize(row.get("kwargs")) or {},
        "trigger": _deserialize(row.get("trigger")),
        "grace": _seconds(row.get("misfire_grace_time")),
        "missed": {"all": "all"}.get(str(row.get("coalesce")), "latest"),
        "at_once": row.get("max_running_jobs", 1),
        "enabled": row.get("paused") not in (True, 1, "1", "t", "true", "True"),
        "jitter": _seconds(row.get("max_jitter")),
    }


def _bytes(value: object) -> bytes:
    """Return a binary column, as a driver gives it or as a dump writes it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    text = str(value)
    for prefix in ("\\\\x", "\\x", "0x", "X'"):
        text = text.removeprefix(prefix)
    try:
        return bytes.fromhex(text.rstrip("'"))
    except ValueError as problem:
        raise NotAPickle("it is written as no hexadecimal text") from problem


def _deserialize(value: object) -> object:
    """Return the value that a serializer of version 4 wrote: a pickle, or JSON."""
    if value is None:
        return None
    if isinstance(value, str) and value[:1] in ("{", "["):
        return _from_json(value)
    data = _bytes(value)
    if data[:1] in (b"{", b"["):
        return _from_json(data.decode(errors="replace"))
    if data[:1] != b"\x80":
        raise NotAPickle("it is neither a pickle nor JSON; CBOR is not read")
    return read_pickle(data)


def _from_json(text: str) -> object:
    try:
        read: object = json.loads(text, object_hook=_object_of_json)
    except ValueError as problem:
        raise NotAPickle(f"it is not JSON: {problem}") from problem
    return read


def _object_of_json(value: dict[str, Any]) -> object:
    """Return the stand-in of an object that version 4 wrote as JSON."""
    if MAGIC not in value:
        return value
    return object_of(*value[MAGIC])


def _seconds(value: object) -> float | None:
    """Return a duration in seconds: of a driver, or as stores without one write it (µs)."""
    if value is None or value == "":
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float):
        return value / 1_000_000
    parts = str(value).split(":")
    try:
        if len(parts) == 3:
            return sum(float(part) * size for part, size in zip(parts, (3600, 60, 1), strict=True))
        return float(str(value)) / 1_000_000
    except ValueError as problem:
        raise NotReadable(f"the duration {value!r} cannot be read", "hh:mm:ss") from problem


def _policies(job: Mapping[str, Any], notes: list[str]) -> dict[str, Json]:
    """Return the policies of a job: for its misfires, its overlap and its jitter."""
    found: dict[str, Json] = {"misfire": job["missed"]}
    at_once = job["at_once"]
    if at_once is None or int(at_once) > 1:
        found["overlap"] = "allow"
        if at_once is not None:
            notes.append(f"it may run beside itself without a bound here, not {at_once} at once")
    found |= _lateness(job["grace"], notes)
    if job["jitter"]:
        found["spread"] = min(round(float(job["jitter"])), LONGEST_SPREAD)
        notes.append("its random jitter is a fixed place in that window here (spread)")
    return found


def _lateness(seconds: float | None, notes: list[str]) -> dict[str, Json]:
    """Return the policy of a job that does not run later than `seconds` after its time."""
    if seconds is None:
        return {}
    if seconds < USUAL_GRACE:
        if seconds != UNCHOSEN:
            notes.append(f"it may run up to {USUAL_GRACE} s late here, not {seconds:g} s")
        return {"misfire": "skip"}
    return {"longestLateness": round(seconds)}


def _facts(job: Mapping[str, Any]) -> tuple[dict[str, Json], Sequence[str]]:
    """Return the facts of a job, and why one is missing: a rule that needs it is told."""
    facts: dict[str, Json] = {
        "id": job["id"],
        "name": None if job["name"] is None else str(job["name"]),
        "func": job["func"],
    }
    missing: list[str] = []
    for name, value in (("args", list(job["args"])), ("kwargs", dict(job["kwargs"]))):
        try:
            facts[name] = as_json(value)
        except NotReadable as problem:
            missing.append(f"{{{name}}} is not known: {problem.why}")
    return facts, missing


def as_json(value: object, depth: int = 0) -> Json:
    """Return an argument of a job as JSON. Raises NotReadable for a value that JSON does not
    have.
    """
    if depth > DEEPEST:
        raise NotReadable("its arguments are nested too deeply", "flatter arguments")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tzinfo):
        return zone_name(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(inner, depth + 1) for inner in value]
    if isinstance(value, dict):
        return {str(name): as_json(inner, depth + 1) for name, inner in value.items()}
    kind = value.ref if isinstance(value, StandIn) else type(value).__name__
    raise NotReadable(
        f"an argument is an object of {kind}, which JSON does not know",
        "a rule whose input names what the action needs, or a job with plain arguments",
    )
