"""EventBridge: schedules of its Scheduler as `get-schedule` prints them, and its scheduled rules.

Its cron(…), rate(…) and at(…) are read as they are. A local time that a clock change skips does not
fire there, so the policy `gap` is `skip`.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from duetick.cli.transfer.documents import objects
from duetick.cli.transfer.items import (
    NotReadable,
    RefusedItem,
    Remark,
    SourceItem,
    SourcePart,
    Timing,
    read_number,
    unreadable,
)
from duetick.domain.expression import InvalidExpression, InvalidTimezone, check_zone, parse
from duetick.domain.schedule import Json

MOST_ATTEMPTS: Final = 185
USUAL_RETRIES: Final = {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86_400}
"""The Scheduler's retries if nobody chose otherwise."""

USUAL_GROUP: Final = "default"
CONTEXT: Final = "<aws.scheduler."
NO_EXPRESSION: Final = "list-schedules prints no expression"


def read(name: str, text: str) -> Iterator[SourcePart]:
    """Yield the items in the output of AWS's commands: get-schedule, list-schedules, list-rules.

    A rule may have its `Targets` beside its own fields; each target is an item.
    """
    for line, document in objects(name, text):
        if isinstance(document, dict):
            yield from read_document(f"{name}:{line}", document)


def read_document(place: str, document: Mapping[str, Any]) -> Iterator[SourcePart]:
    """Yield the items of one document."""
    for listed in ("Schedules", "Rules"):
        if isinstance(document.get(listed), list):
            for one in document[listed]:
                yield from _read_one(place, one if isinstance(one, dict) else {})
            return
    yield from _read_one(place, document)


def _read_one(place: str, one: Mapping[str, Any]) -> Iterator[SourcePart]:
    name = f"{place} {one.get('Name', '')}".strip()
    if "EventPattern" in one and not one.get("ScheduleExpression"):
        yield Remark(name, _show(one), "a rule for events, which has no times")
        return
    rule = "EventBusName" in one or ":rule/" in str(one.get("Arn", ""))
    targets = one.get("Targets") or [{}] if rule else [one.get("Target") or {}]
    if not isinstance(targets, list):
        targets = [targets]
    for target in targets:
        try:
            yield _item(name, one, _object("target", target), is_rule=rule, alone=len(targets) == 1)
        except NotReadable as problem:
            yield RefusedItem(name, _show(one), problem.why, problem.instead)


def _item(
    place: str, one: Mapping[str, Any], target: Mapping[str, Any], *, is_rule: bool, alone: bool
) -> SourceItem:
    named = str(one.get("Name", ""))
    group = str(one.get("GroupName") or USUAL_GROUP)
    if not named:
        raise NotReadable("it has no Name", "what `aws scheduler get-schedule` prints")
    if not one.get("ScheduleExpression"):
        command = f"aws scheduler get-schedule --group-name {group} --name {named}"
        raise NotReadable(NO_EXPRESSION, f"what `{command}` prints, or --from aws")
    notes: list[str] = []
    timing = _timing(one, target, notes)
    facts = _facts(one, target, group, notes)
    whole = named if group == USUAL_GROUP or is_rule else f"{group}/{named}"
    if not alone:
        whole = f"{whole}/{target.get('Id', '')}"
    return SourceItem(place, _show(one), whole, timing, facts, notes)


def _show(one: Mapping[str, Any]) -> str:
    zone = one.get("ScheduleExpressionTimezone")
    return " ".join(filter(None, [str(one.get("ScheduleExpression") or "-"), str(zone or "")]))


def _timing(one: Mapping[str, Any], target: Mapping[str, Any], notes: list[str]) -> Timing:
    named = str(one.get("ScheduleExpressionTimezone") or "UTC")
    zone = None if named == "UTC" else named
    try:
        cron = parse(str(one["ScheduleExpression"]))
        check_zone(zone)
    except (InvalidExpression, InvalidTimezone) as problem:
        raise unreadable(problem, "a cron(…), rate(…) or at(…) of EventBridge") from None
    if cron.startswith("rate("):
        notes.append("it counts from its creation here, not from that in EventBridge")
    policies: dict[str, Json] = {"gap": "skip"}
    policies |= _window(one) | _spread(one, notes) | _retries(target, notes)
    if one.get("ActionAfterCompletion") == "DELETE":
        policies["afterCompletion"] = "delete"
    return Timing(cron, zone, policies, enabled=one.get("State", "ENABLED") != "DISABLED")


def _object(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise NotReadable(f"its {name} is no object", "what `aws scheduler get-schedule` prints")
    return value


def _window(one: Mapping[str, Any]) -> dict[str, Json]:
    """Return the start and the end, as policies."""
    names = (("StartDate", "startsAt"), ("EndDate", "endsAt"))
    return {ours: _instant(one[theirs]) for theirs, ours in names if one.get(theirs)}


def _instant(value: object) -> str:
    """Return a date of AWS, a text or seconds since the epoch, as the API takes it."""
    try:
        if isinstance(value, int | float):
            moment = datetime.fromtimestamp(value, UTC)
        else:
            moment = datetime.fromisoformat(str(value))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError) as problem:
        raise NotReadable(f"the date {value!r} cannot be read", "2026-12-01T09:00:00Z") from problem


def _spread(one: Mapping[str, Any], notes: list[str]) -> dict[str, Json]:
    window = _object("FlexibleTimeWindow", one.get("FlexibleTimeWindow") or {})
    if window.get("Mode") != "FLEXIBLE":
        return {}
    minutes = read_number("MaximumWindowInMinutes", window.get("MaximumWindowInMinutes") or 0)
    notes.append(f"its window of {minutes} min is a fixed place in it here (spread)")
    return {"spread": minutes * 60}


def _retries(target: Mapping[str, Any], notes: list[str]) -> dict[str, Json]:
    """Return the promise and the retries; nothing if they are EventBridge's defaults."""
    given = _object("RetryPolicy", target.get("RetryPolicy") or {})
    if target.get("DeadLetterConfig"):
        notes.append("its dead-letter queue is the policy onFailure here: name an action for it")
    if not given or {**USUAL_RETRIES, **given} == USUAL_RETRIES:
        return {}
    found: dict[str, Json] = {}
    retries = given.get("MaximumRetryAttempts")
    if retries == 0:
        found["delivery"] = "at_most_once"
    elif retries is not None:
        attempts = min(read_number("MaximumRetryAttempts", retries) + 1, MOST_ATTEMPTS)
        found |= {"delivery": "at_least_once", "retry": {"attempts": attempts}}
        notes.append("what failed is tried again here, not only what did not reach its target")
    age = given.get("MaximumEventAgeInSeconds")
    if age not in (None, USUAL_RETRIES["MaximumEventAgeInSeconds"]):
        found["longestLateness"] = read_number("MaximumEventAgeInSeconds", age)
    return found


def _facts(
    one: Mapping[str, Any], target: Mapping[str, Any], group: str, notes: list[str]
) -> dict[str, Json]:
    arn = str(target.get("Arn") or "")
    text = target.get("Input")
    if isinstance(text, str) and CONTEXT in text:
        notes.append(f"{CONTEXT}…> in its input stays as it is: the action has it in its context")
    if target.get("InputTransformer") or target.get("InputPath"):
        notes.append("its input transformer is not read: write the input in a rule")
    return {
        "name": str(one.get("Name", "")),
        "group": group,
        "target": arn,
        "target_name": arn.rpartition(":")[2].rpartition("/")[2],
        "target_id": str(target.get("Id") or ""),
        "input": _input(text),
        "description": one.get("Description"),
        "role": target.get("RoleArn"),
    }


def _input(text: object) -> Json:
    """Return an input as JSON, or as text if it is no JSON."""
    if not isinstance(text, str):
        return None
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return value
