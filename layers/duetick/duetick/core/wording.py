"""The words of an explanation: the home of its sentences, and its answer as JSON.

The first sentence is the verdict. The others say what it follows from: the ledger's entry, the
definition in force then, the policies, the local time, and changes of the clock near it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from duetick.core.explain import Explanation
from duetick.core.log_lines import explain_lost
from duetick.core.previews import ClockChange, changes_near
from duetick.core.wire import event_json, failure_json, iso, occurrence_json, policies_json
from duetick.domain.accounts import WHY
from duetick.domain.claims import spread_ms
from duetick.domain.definitions import Definition
from duetick.domain.expression import InvalidTimezone, clock_rule
from duetick.domain.group_pauses import GroupPause
from duetick.domain.identity import is_job
from duetick.domain.limits import say_rate
from duetick.domain.occurrence import Occurrence
from duetick.domain.policies import DAY, LAST_INSTANT, Misfire, Overlap, Policies
from duetick.domain.schedule import Json
from duetick.domain.states import Reason, State
from duetick.domain.transitions import has_ended
from duetick.domain.verdicts import Verdict

NEAR_MS: Final = DAY * 1_000
"""A change of the clocks is told if it is at most a day away."""

RECORDED: Final[dict[Verdict, str]] = {
    "fired": "It fired, and its action ran to its end.",
    "failed": "It fired and failed; no attempt is left, or none would help.",
    "lost": "It is lost.",
    "rejected": "It was due and could not be run as it was.",
    "poisoned": "It did not fire: the cron or the zone of its row could not be read.",
    "overlap": "It was skipped: another occurrence of the schedule ran, or a newer one waited.",
    "missed": "It did not fire: its tick came too late, and the misfire policy left it out.",
    "paused": "It did not fire: the schedule was paused.",
    "disabled": "It was due, and did not begin: the schedule was paused or disabled.",
    "schedule_deleted": "It was due, and did not begin: the schedule was deleted.",
    "superseded": "It was due, and did not begin: the fire times of the schedule were changed.",
    "quota": "It did not fire: the runs that the schedule may have were used up.",
    "operator": "An operator cancelled it before it came to its end.",
}
"""The verdicts of times whose outcome the ledger has."""

FORESEEN: Final[dict[Verdict, str]] = {
    "lost": "It will be lost: it may begin no more.",
    "missed": "It does not fire: it is late, and the misfire policy leaves it out.",
    "paused": "It does not fire: the schedule is paused then.",
    "disabled": "It will not begin: the schedule is paused without an end, or disabled.",
    "schedule_deleted": "It will not begin: the schedule is deleted.",
    "superseded": "It will not begin: the fire times of the schedule were changed.",
    "quota": "It does not fire: the runs that the schedule may have are used up by then.",
    "running": "It runs now.",
    "will_retry": "An attempt did not succeed, and another one follows.",
    "will_fire": "It will fire, as things stand.",
    "may_overlap": "It runs only if no other occurrence of the schedule runs then.",
    "not_a_fire_time": "It is no fire time.",
    "skipped_by_clock": "It is no fire time: the clocks skip a local time here, and `gap` is skip.",
    "repeated_by_clock": "It is no fire time: its local time comes again, and `repeat` is first.",
    "outside_window": "It is no fire time: it lies outside the window of the schedule.",
    "no_schedule": "There is no such schedule at that time.",
    "poisoned": "It does not fire: the cron or the zone of the schedule's row cannot be read.",
    "unreadable": "It does not fire: the cron or the zone cannot be read.",
    "backfilled": "Its tick has left no outcome of it, and a backfill has made it since.",
    "unindexed": "It does not fire, as things stand: the schedule has not the row that it needs.",
    "unaccounted": "It is not accounted for, which is a fault of Duetick's, or of its data.",
    "unknown": "Nothing is kept that says what became of it.",
}
"""The verdicts of all other times."""


def say(found: Explanation, *, operator: bool) -> list[str]:
    """Return the sentences of an explanation, the verdict first."""
    found = _without_note(found) if operator else found
    parts = (_verdict, _entry, _definition, _policies, _beside, _clocks)
    lines = [line for part in parts for line in part(found)]
    lines[1:1] = _say_failures(found, operator=operator)
    return lines


def _without_note(found: Explanation) -> Explanation:
    """Return the explanation for operators: a pause's note is its user's, and may tell a secret."""
    record = found.sight.record
    if record is None or record.pause is None or not record.pause.note:
        return found
    from duetick.domain.redaction import redact_text

    pause = replace(record.pause, note=redact_text(record.pause.note) or "")
    return replace(found, sight=found.sight._replace(record=replace(record, pause=pause)))


def explanation_json(found: Explanation, *, operator: bool) -> dict[str, Json]:
    """Return an explanation as the API shows it, with the errors that its reader may see."""
    entry, dated = found.occurrence, found.judged.definition
    line = occurrence_json(entry, found.failures, operator=operator) if entry else None
    return {
        "at": iso(found.at),
        "local": found.local,
        "verdict": found.verdict,
        "said": [*say(found, operator=operator)],
        "definition": dated and definition_json(dated),
        "occurrence": line,
        "events": [event_json(one, operator=operator) for one in found.events],
        "before": iso(found.judged.before),
        "after": iso(found.judged.after),
        "upcoming": [one.json() for one in found.upcoming],
    }


def definition_json(one: Definition) -> dict[str, Json]:
    """Return a dated definition as JSON."""
    return {
        "since": iso(one.since),
        "cron": one.cron,
        "timezone": one.timezone,
        "standing": one.standing,
        "pausedUntil": iso(one.paused_until),
        "policies": policies_json(one.policies),
    }


def _verdict(found: Explanation) -> Iterator[str]:
    entry = found.occurrence
    ended = entry is not None and has_ended(entry)
    if entry and entry.reason is Reason.OPERATOR and is_job(entry.origin):
        yield "It was cancelled before it came to its end."
        return
    yield (RECORDED if ended and found.verdict in RECORDED else FORESEEN)[found.verdict]
    why = explain_lost(entry) if entry else None
    if why:
        yield why
    if found.verdict in _DETAILS:
        yield from _DETAILS[found.verdict](found)


def _say_failures(found: Explanation, *, operator: bool) -> Iterator[str]:
    """Yield the failed attempts, and why it was never run."""
    for one in found.failures:
        error = failure_json(one, operator=operator)["error"]
        yield f"Attempt {one.attempt} ended at {iso(one.at)}: {error}"
    entry = found.occurrence
    if entry and not found.failures and entry.error:
        yield f"{occurrence_json(entry, (), operator=operator)['error']}"


def _entry(found: Explanation) -> Iterator[str]:
    """Yield the sentences about the ledger's entry, or about what an unrecorded time waits for."""
    entry = found.occurrence
    if entry is None:
        yield from _say_unrecorded(found)
    elif entry.range_end is not None:
        yield f"The history has it as {_range(entry)}: {entry.state}, {entry.reason}."
    else:
        reason = f", {entry.reason}" if entry.reason else ""
        yield f"The history has it as {entry.state}{reason}, since {iso(entry.updated_at)}."
        yield from _attempts(entry)
        yield from _waits_for_limit(found)
    for one in found.besides:
        yield f"Besides, {one.origin} has this very time: {one.state}."


def _range(whole: Occurrence) -> str:
    """Return the words for a time in a range."""
    times = "one time" if whole.count == 1 else f"one of {whole.count:,} times"
    return f"{times} from {iso(whole.nominal_at)} to {iso(whole.range_end)}"


def _waits_for_limit(found: Explanation) -> Iterator[str]:
    one = found.limit
    if one is None:
        return
    kind, _, name = one.scope.partition(":")
    scope = "the user" if kind == "user" else f"the {kind} {name}"
    bounds = [f"{one.parallel:,} at once"] if one.parallel else []
    bounds += [say_rate(one.rate, one.per)] if one.rate else []
    yield f"It waits for a limit that an operator set on {scope}: {' and '.join(bounds)}."
    yield f"There is a place by {iso(one.free_at(found.now))}, or sooner."


def _attempts(entry: Occurrence) -> Iterator[str]:
    if entry.begun_at is not None:
        late = (entry.begun_at - entry.nominal_at) / 1_000
        number = f"Attempt {entry.attempts}" if entry.attempts > 1 else "It"
        when = f"{abs(late):g} s {'before' if late < 0 else 'after'} the fire time"
        yield f"{number} began at {iso(entry.begun_at)}, {when}."
    if entry.state is State.RETRYING and entry.due_at <= LAST_INSTANT:
        yield f"The next attempt is due at {iso(entry.due_at)}."


def _say_unrecorded(found: Explanation) -> Iterator[str]:
    if found.at > found.now:
        return
    expected = found.sight.expected
    if expected is not None:
        does = f"makes it {_range(expected)}" if expected.range_end is not None else "does"
        yield f"It is past, and no tick has claimed it yet; the next one {does}."
    elif found.verdict == "paused" and found.judged.group is None:
        yield "The history has it when the pause is over."


def _definition(found: Explanation) -> Iterator[str]:
    one = found.judged.definition
    if one is None:
        return
    zone = f" in {one.timezone}" if one.timezone else ""
    since = iso(one.since)
    match one.standing:
        case "deleted":
            yield f"The schedule was deleted at {since}."
        case "active" if one.paused_until is not None:
            until = iso(one.paused_until)
            yield f"It is paused from {since} until {until}; its cron: {one.cron}{zone}."
        case "active":
            yield f"Its cron since {since}: {one.cron}{zone}."
        case _:
            yield f"{one.standing.capitalize()} since {since}; its cron: {one.cron}{zone}."
    entry = found.occurrence
    if entry and (entry.cron, entry.timezone) != (one.cron, one.timezone):
        yield f"It was claimed under another cron: {entry.cron}."


def _policies(found: Explanation) -> Iterator[str]:
    """Yield the policies that matter for a time that fires or is to fire."""
    entry = found.occurrence or found.sight.expected
    record = found.sight.record
    if entry is None or found.verdict not in _FIRES:
        return
    policies = entry.policies
    spread = spread_ms(entry.user_id, entry.key, policies.spread)
    if policies.spread:
        yield f"Its place in the spread of {policies.spread} s is {spread / 1_000:g} s after it."
    if not has_ended(entry) and record and record.policies.max_runs is not None:
        yield f"The schedule has had {record.runs} of its {record.policies.max_runs} runs."
    other = found.sight.under_way
    if other and not has_ended(entry) and policies.overlap is not Overlap.ALLOW:
        then = "waits" if policies.overlap is Overlap.WAIT else "is skipped"
        its_time = iso(other.nominal_at)
        does = "runs now" if other.state is State.PROCESSING else "is to be retried"
        yield f"The occurrence of {its_time} {does}; if it runs then, this one {then}."


def _beside(found: Explanation) -> Iterator[str]:
    if found.pause_now and found.pause_now != found.judged.group:
        yield _group(found.pause_now)
    if found.judged.before is not None:
        yield f"The fire time before it: {iso(found.judged.before)}."
    if found.judged.after is not None:
        yield f"The fire time after it: {iso(found.judged.after)}."


def _clocks(found: Explanation) -> Iterator[str]:
    """Yield the local time, and the changes of the clock near it."""
    if found.timezone is None or found.local is None:
        yield f"The time is {iso(found.at)}."
        return
    named = found.judged.definition or found.sight.record
    yield f"The time is {found.local} in {named.timezone if named else found.timezone}."
    try:
        changes = changes_near(found.timezone, found.at, NEAR_MS)
        rule = clock_rule(named.cron) if named else None
    except (InvalidTimezone, ValueError):
        return
    for change in changes:
        way = "forward" if change.goes_forward else "back"
        fate = "do not exist" if change.goes_forward else "come twice"
        yield f"Clocks go {way} at {iso(change.at)}: the local times {change.span} {fate}."
        if named and rule:
            yield _clock_rule(rule, change, named.policies)


def _clock_rule(rule: str, change: ClockChange, policies: Policies) -> str:
    if rule == "elapsed":
        return "A rate counts elapsed time, so that does not matter to it."
    if rule == "real":
        return "This cron keeps real time: it fires whenever the clock reads a time that it names."
    if change.goes_forward:
        then = "fires once, right then" if policies.gap == "run" else "does not fire"
        return f"With `gap` {policies.gap}, a fire time among them {then}."
    both = policies.repeat == "both" and rule != "once"
    passes = "on both passes" if both else "on the first pass only"
    return f"With `repeat` {policies.repeat}, a fire time among them fires {passes}."


def _say_missed(found: Explanation) -> Iterator[str]:
    entry = found.occurrence or found.sight.expected
    if entry is None:
        return
    p = entry.policies
    fire = {
        Misfire.LATEST: "only the newest of them, and only if no newer time is on time",
        Misfire.ALL: f"the newest {p.catch_up} of them",
        Misfire.SKIP: "none of them",
    }[p.misfire]
    yield f"A time is late after {p.grace} s. Of late times, `misfire` {p.misfire} fires {fire}."
    if p.longest_lateness is not None:
        yield f"None fires that is more than {p.longest_lateness} s late."


def _say_paused(found: Explanation) -> Iterator[str]:
    if found.judged.group:
        yield _group(found.judged.group)
        return
    pause = found.sight.record.pause if found.sight.record else None
    if pause is None or found.occurrence:
        return
    note = f" ({pause.note})" if pause.note else ""
    end = iso(pause.until) if pause.until is not None else "it is resumed"
    yield f"The pause{note} began at {iso(pause.since)} and lasts until {end}."


def _group(pause: GroupPause) -> str:
    """Return the sentence of a pause of a group. Its note is for operators, who list the pauses."""
    whose = {"all": "everything", "user": "all schedules of the user", "flow": "the flow"}
    kind, _, name = pause.scope.partition(":")
    scope = f"{whose[kind]} {name}" if kind == "flow" else whose[kind]
    end = iso(pause.until) if pause.until is not None else "it is resumed"
    return f"An operator paused {scope}, from {iso(pause.since)} until {end}."


def _window(found: Explanation) -> Iterator[str]:
    policies = found.judged.definition.policies if found.judged.definition else None
    if policies and policies.starts_at is not None:
        yield f"The window begins at {iso(policies.starts_at)}."
    if policies and policies.ends_at is not None:
        yield f"The window ends at {iso(policies.ends_at)}."


def _limit(found: Explanation) -> Iterator[str]:
    record = found.sight.record
    if record and record.policies.max_runs is not None and found.occurrence is None:
        yield f"It has had {record.runs} of {record.policies.max_runs} runs."


def _retry(found: Explanation) -> Iterator[str]:
    record, entry = found.sight.record, found.occurrence
    if found.sight.group:
        yield _group(found.sight.group)
    elif record and record.pause and entry and record.pause.holds(max(found.now, entry.due_at)):
        yield "The schedule is paused: it follows when the pause is over."


def _say_unreadable(found: Explanation) -> Iterator[str]:
    if found.sight.defect:
        yield found.sight.defect
        yield "Once its row is mended, the times since are late: the misfire policy decides."


_FIRES: Final = frozenset[Verdict](
    {"fired", "failed", "running", "will_retry", "will_fire", "may_overlap"}
)

_DETAILS: Final[dict[Verdict, Callable[[Explanation], Iterator[str]]]] = {
    "missed": _say_missed,
    "paused": _say_paused,
    "outside_window": _window,
    "quota": _limit,
    "will_retry": _retry,
    "unreadable": _say_unreadable,
    "unaccounted": lambda _: iter([f"Verify reports it: {WHY['missing']}."]),
    "unindexed": lambda _: iter(["The hourly audit reports it; resuming the schedule mends it."]),
}
"""The details of a verdict, beside its sentence."""
