"""A schedule in the words of EventBridge Scheduler, if it fires there at the same instants.

EventBridge skips a local time that a clock change skips, and fires once at one that is repeated.
Duetick has other rules, and each schedule chooses. So both are compared over the clock changes of
the next years: a schedule whose times no change touches is alike whatever its policies say.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from duetick.domain.errors import InvalidSchedule
from duetick.domain.expression import count, next_fire, parse
from duetick.domain.expression.parts import ExpressionParts, as_aws, offsets_within, parts_of
from duetick.domain.expression.spelling import spell_out
from duetick.domain.policies import DAY, MINUTE_MS

if TYPE_CHECKING:
    from duetick.domain.expression.instants import Gap, Repeat

LOOKED_AT_MS: Final = 10 * 366 * DAY * 1_000
"""The time whose clock changes are compared. A time of a later one that EventBridge leaves out is
late, and a tick claims it.
"""


class NotAlike(InvalidSchedule):
    """A schedule that fires at other instants in EventBridge: the field that makes it so."""


class AwsExpression(NamedTuple):
    """An expression of EventBridge, and its time zone; None is UTC."""

    expression: str
    timezone: str | None = None


def say(
    cron: str, timezone: str | None, *, gap: "Gap" = "run", repeat: "Repeat" = "first", now: int
) -> AwsExpression:
    """Return the expression and the zone by which EventBridge fires at the same instants.

    Raises CannotSay if it has no words for the expression, NotAlike if clock changes part the two.
    """
    said = as_aws(cron)
    parts = parts_of(cron)
    if parts is None:
        return _say_at(cron, timezone, gap) if said.startswith("at(") else AwsExpression(said)
    theirs = count(as_they_read(said), timezone, *_span(now), gap="skip", repeat="first")
    if count(cron, timezone, *_span(now), gap=gap, repeat=repeat) == theirs:
        return AwsExpression(said, timezone)
    if parts.names_each_hour and _keeps_minutes(parts, timezone, now):
        return AwsExpression(said)
    raise _part(cron, timezone, parts, gap=gap, now=now)


def _span(now: int) -> tuple[int, int]:
    return now, now + LOOKED_AT_MS


def _say_at(cron: str, timezone: str | None, gap: "Gap") -> AwsExpression:
    """Return a single time in UTC, which no clock change touches."""
    at = next_fire(cron, timezone, 0, gap=gap)
    if at is None:
        skipped = "is a time that a clock change skips, and its policy gap leaves that out."
        raise NotAlike("cron", f"{parse(cron)} {skipped}", "never_fires")
    from datetime import UTC, datetime  # for the few that fire once

    return AwsExpression(f"at({datetime.fromtimestamp(at / 1_000, UTC):%Y-%m-%dT%H:%M:%S})")


def as_they_read(said: str) -> str:
    """Return an expression of EventBridge without stars in its times.

    Our reader then takes it by EventBridge's rule: a star would keep real time.
    """
    parts = parts_of(said)
    if parts is None:
        return said
    fields = said.removeprefix("cron(").removesuffix(")").split()
    fields[:2] = [spell_out(parts.minutes), spell_out(parts.hours)]
    return f"cron({' '.join(fields)})"


def _keeps_minutes(parts: ExpressionParts, timezone: str | None, now: int) -> bool:
    """Return True if each offset of the zone maps the minutes to themselves: UTC names the same."""
    shifts = (offset // MINUTE_MS for offset in offsets_within(timezone, *_span(now)))
    return all(
        frozenset((minute - shift) % 60 for minute in parts.minutes) == parts.minutes
        for shift in shifts
    )


def _part(
    cron: str, timezone: str | None, parts: ExpressionParts, *, gap: "Gap", now: int
) -> NotAlike:
    """Return the refusal that names the field in which the two differ."""
    where = f"{cron!r} in {timezone}"
    if not parts.is_fixed:
        return NotAlike(
            "cron",
            f"{where} keeps real time where clocks go back, and EventBridge fires once at a time "
            "that is repeated; name hours that no clock change touches, or another time zone.",
            "invalid_cron",
        )
    skipped = count(cron, timezone, *_span(now), gap="skip", repeat="first")
    if gap == "run" and skipped != count(cron, timezone, *_span(now), gap="run", repeat="first"):
        return NotAlike(
            ("policies", "gap"),
            f"is run, and EventBridge leaves out a time that a clock change skips, as it does with "
            f"{where}; choose skip, or another time.",
            "not_one_of",
        )
    return NotAlike(
        ("policies", "repeat"),
        f"is both, and EventBridge fires once at a time that a clock change repeats, as it does "
        f"with {where}; choose first, or another time.",
        "not_one_of",
    )
