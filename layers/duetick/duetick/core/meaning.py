"""The meaning of an expression before anything is saved: a sentence, its times, and warnings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from duetick.core.accepting import Quotas, doubts_of
from duetick.core.describing import in_words
from duetick.core.previews import ClockChange, Preview, changes_near, local_time, previews
from duetick.domain.cadence import warning
from duetick.domain.errors import say_count, sentence
from duetick.domain.expression import parse
from duetick.domain.firing import Times
from duetick.domain.policies import DAY, Policies
from duetick.domain.rows import row_of
from duetick.domain.schedule import Json, Record, Schedule, check_timing

HALF_A_YEAR_MS: Final = 183 * DAY * 1_000
EARLIEST_LAST_DAY: Final = 28
"""Every month has this day."""

_UNITS: Final = ((3_600, "hour"), (60, "minute"), (1, "second"))
_GAPS: Final[tuple[Literal["run", "skip"], ...]] = ("run", "skip")
_REPEATS: Final[tuple[Literal["first", "both"], ...]] = ("first", "both")


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of an expression: its text as a put keeps it, its next times, and warnings for
    its author.
    """

    cron: str
    words: str
    timezone: str | None
    upcoming: list[Preview]
    warnings: list[str]

    def json(self) -> Mapping[str, Json]:
        """Return the meaning as the API shows it."""
        return {
            "cron": self.cron,
            "words": self.words,
            "timezone": self.timezone,
            "upcoming": [one.json() for one in self.upcoming],
            "warnings": [*self.warnings],
        }


class Circumstances(NamedTuple):
    """The deployment in which an expression has its meaning, and the time there."""

    quotas: Quotas
    now: int
    tick_seconds: int


def meaning_of(wanted: Schedule, known: Circumstances, count: int, *, after: int) -> Meaning:
    """Return the meaning of a schedule's times. Raise unless its cron and zone can be read.

    Any other fault of the times that a put would refuse is a warning.
    """
    check_timing(wanted.cron, wanted.timezone)
    record, cron = replace(Record.of(wanted), anchor=known.now), parse(wanted.cron)
    spent = _times(record, record.policies).count(known.now, after) if after > known.now else 0
    found = previews(record, after, count, spent=spent)
    told = [
        *_of_refusals(record, known),
        *_of_times(cron, found, count),
        *_of_clocks(record, known),
    ]
    return Meaning(
        cron,
        " ".join(_sentences(cron, wanted)),
        wanted.timezone,
        found,
        [sentence(one) for one in told],
    )


def _sentences(cron: str, wanted: Schedule) -> Iterator[str]:
    yield f"{in_words(cron).removesuffix('.')}, {_zone_in_words(cron, wanted.timezone)}."
    spread = wanted.policies.spread
    if spread:
        yield f"It starts up to {_span_in_words(spread)} later, each time by the same span."


def _span_in_words(seconds: int) -> str:
    """Return a span in the longest unit that divides it: 2 hours, 90 minutes."""
    size, name = next(one for one in _UNITS if seconds % one[0] == 0)
    return say_count(seconds // size, name)


def _zone_in_words(cron: str, timezone: str | None) -> str:
    if cron.startswith("rate("):
        return "in elapsed time, whatever the clocks do"
    return f"by the clocks of {timezone}" if timezone else "in UTC"


def _of_refusals(wanted: Record, known: Circumstances) -> Iterator[str]:
    for refusal in doubts_of(wanted, known.quotas, known.now):
        yield f"A put refuses it: {refusal}"
    tight = warning(wanted, known.tick_seconds, known.now)
    if tight:
        yield f"It {tight}"


def _of_times(cron: str, found: Sequence[Preview], count: int) -> Iterator[str]:
    if found and len(found) < count:
        yield f"It fires {say_count(len(found), 'time')}, and then never again"
    yield from _short_months(cron)


def _short_months(cron: str) -> Iterator[str]:
    """Say that some months are left out, where every named day is one that not all months have."""
    if "(" in cron:
        return
    _, _, dates, _, weekdays = cron.split(" ")
    days = dates.split(",")
    if weekdays == "*" and all(one.isdigit() for one in days):
        least = min(map(int, days))
        if least > EARLIEST_LAST_DAY:
            yield f"Months without a day {least} are left out; L is the last day of each"


def _of_clocks(wanted: Record, known: Circumstances) -> Iterator[str]:
    for change in changes_near(wanted.timezone, known.now + HALF_A_YEAR_MS, HALF_A_YEAR_MS):
        yield from _at_change(wanted, change)


def _at_change(wanted: Record, change: ClockChange) -> Iterator[str]:
    """Say what a change of the clocks does to a fixed time that it skips or repeats."""
    policies = wanted.policies
    day = local_time(wanted.timezone, change.at)[:10]
    if change.goes_forward:
        fires, skipped = (
            _times(wanted, replace(policies, gap=gap)).names(change.at) for gap in _GAPS
        )
        if fires and not skipped:
            what = "it does not fire" if policies.gap == "skip" else "it fires at the change"
            yield f"On {day} the clocks skip a time that it names ({change.span}): {what}"
        return
    until = change.at + change.shown - change.then
    once, both = (
        _times(wanted, replace(policies, repeat=repeat)).count(change.at - 1, until - 1)
        for repeat in _REPEATS
    )
    if once != both:
        what = "both passes" if policies.repeat == "both" else "the first pass"
        yield f"On {day} a time that it names comes twice ({change.span}): it fires on {what}"


def _times(wanted: Record, policies: Policies) -> Times:
    return Times.of(row_of(replace(wanted, policies=policies), 0))
