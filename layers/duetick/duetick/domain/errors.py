"""Every error that Duetick raises on purpose: one base, and one class for each condition."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from duetick.domain.codes import Code

MIGRATE = "Run `duetick migrate`, or invoke the migrate function, then try again."


class DuetickError(Exception):
    """The base of all errors."""


MOST_TOLD = 100
"""The most flaws of one refusal. Nobody reads more, and no request may cost more of our time."""

_LONGEST_NAME = 80
_MOST_SHOWN = 8

_KINDS = {
    "NoneType": "null",
    "int": "a number",
    "float": "a number with a fraction",
    "str": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
}


def kind_of(value: object) -> str:
    """Return the kind of a value in the words of JSON, else the name of its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    name = type(value).__name__
    return _KINDS.get(name, name)


class Flaw:
    """One mistake: its path (names and places, the outermost first), its code, and the problem.

    `problem` says what was expected, what came and what to do. `advice` says what the people who
    run or write the deployment can do. The log and Python's errors show it; no answer of the API
    does.
    """

    __slots__ = ("advice", "code", "path", "problem")

    def __init__(
        self, path: tuple[str | int, ...], code: Code, problem: str, advice: str = ""
    ) -> None:
        self.path: Final = path
        self.code: Final = code
        self.problem: Final = problem
        self.advice: Final = advice

    @property
    def name(self) -> str:
        """The path as text: policies.retry.attempts, input.items[0]."""
        parts = (
            f"[{part}]" if isinstance(part, int) else f".{_printable(part)}" for part in self.path
        )
        return "".join(parts).removeprefix(".")

    def __str__(self) -> str:
        text = f"{sentence(self.problem)} {self.advice}" if self.advice else self.problem
        return f"{self.name}: {text}" if self.path else text


class Refusal(DuetickError):
    """The refusal of a request. `flaws` lists everything that is wrong with it."""

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        """The flaws: at least one."""
        raise NotImplementedError


class InvalidSchedule(Refusal, ValueError):
    """A schedule has wrong fields. Dots separate the parts of a field's path."""

    def __init__(
        self,
        field: str | tuple[str | int, ...],
        problem: str,
        code: Code = "invalid",
        advice: str = "",
    ) -> None:
        path = tuple(field.split(".")) if isinstance(field, str) else field
        self._flaws: tuple[Flaw, ...] = (Flaw(path, code, problem, advice),)
        super().__init__(str(self._flaws[0]))

    @classmethod
    def of(cls, flaws: Iterable[Flaw]) -> Self:
        """Return one refusal for the first `MOST_TOLD` flaws. The iterable is read no further."""
        several = tuple(islice(flaws, MOST_TOLD))
        first = several[0]
        made = cls(first.path, first.problem, first.code)
        made._flaws = several
        made.args = (sentences(several),)
        return made

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        """See `Refusal`."""
        return self._flaws


def _printable(part: str) -> str:
    """Return a foreign name without unprintable characters, cut to `_LONGEST_NAME`."""
    return (part if part.isprintable() else repr(part)[1:-1])[:_LONGEST_NAME]


def sentences(flaws: tuple[Flaw, ...]) -> str:
    """Return the flaws as sentences in a row."""
    if not flaws[1:]:
        return str(flaws[0])
    shown = [sentence(str(flaw)) for flaw in flaws[:_MOST_SHOWN]]
    remaining = len(flaws) - len(shown)
    least = "at least " if len(flaws) == MOST_TOLD else ""
    return " ".join(shown + ([f"There are {least}{remaining} more."] if remaining else []))


def sentence(text: str) -> str:
    """Return the text with a full stop, unless it has an end."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def say_count(number: int, noun: str) -> str:
    """Return a number and its noun: 1 character, 2 characters."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def refusals_of(checks: Iterable[Callable[[], object]]) -> list[Refusal]:
    """Run every check, even after one that refuses. Return at most `MOST_TOLD` refusals."""
    return list(islice(_refusals(checks), MOST_TOLD))


def _refusals(checks: Iterable[Callable[[], object]]) -> Iterator[Refusal]:
    for check in checks:
        try:
            check()
        except Refusal as refusal:
            yield refusal


def check_all(*checks: Callable[[], object]) -> None:
    """Run every check. Raise the refusals, several of them as one InvalidSchedule."""
    refuse(refusals_of(checks))


def refuse(found: list[Refusal]) -> None:
    """Raise the refusals, if any: one as it is, several as one InvalidSchedule."""
    if len(found) == 1:
        raise found[0]
    if found:
        raise InvalidSchedule.of(flaw for refusal in found for flaw in refusal.flaws)


class InvalidStoreUrl(DuetickError, ValueError):
    """The address of a store cannot be read."""


class IllegalTransition(DuetickError):
    """A transition between two states that is not allowed."""


class SchemaOutdated(DuetickError):
    """The database has no schema, or one that this code cannot use."""


class SchemaBlocked(DuetickError):
    """The database has tables or indexes in the schema's place that cannot be taken over."""


class StoreRestored(DuetickError):
    """The store is older than its witness, so it was restored from a backup. Nothing is claimed."""


class WitnessUnavailable(DuetickError):
    """The witness of the store cannot be read or written."""


class StoreUnavailable(DuetickError):
    """The database did not answer; the driver's own error is the cause."""


class BellsUnavailable(StoreUnavailable):
    """EventBridge Scheduler, which rings for a managed store, did not take a call."""


class NotPermitted(StoreUnavailable):
    """The database forbids the operation to our user: a grant helps, waiting does not."""


class NotAccepted(StoreUnavailable):
    """The database answers, and one side refuses the other: a login, a certificate, a name.

    Waiting helps only while a new login or name is not known everywhere.
    """


class ClockSkewed(DuetickError):
    """The host's clock is too far from the database's clock to be used for a claim."""


class NotFound(DuetickError, LookupError):
    """The user has no such schedule: it never existed, was deleted, or is another user's."""

    def __init__(self, message: str = "No such schedule.") -> None:
        super().__init__(message)


class BackfillNotFound(NotFound):
    """There is no backfill of that name."""


class BackfillStands(DuetickError):
    """Another backfill of the schedule has some of the times, or too many stand."""


class OccurrenceNotFound(NotFound):
    """The ledger has no such occurrence, or no index finds it by what was given."""

    def __init__(self, message: str = "No such occurrence.") -> None:
        super().__init__(message)


class JobNotFound(NotFound):
    """The user has no such job: it never existed, was purged, or is another user's."""

    def __init__(self, message: str = "No such job.") -> None:
        super().__init__(message)


class OccurrenceConflict(DuetickError):
    """An occurrence that cannot be retried, cancelled or deleted as it is; the message says why."""


class VersionConflict(DuetickError):
    """The schedule was changed by another writer meanwhile, or exists already."""

    def __init__(self, wanted: int, found: int, *, tag: str | None = None) -> None:
        now = f"it has the ETag {tag} now" if tag else f"it has version {found} now"
        super().__init__(
            "There is none (any more), so that there is nothing to change."
            if not found
            else "There is one already: leave out the condition to replace it."
            if not wanted
            else f"It was changed meanwhile, {now}: read it again, then repeat the change."
        )
        self.make_wanted = wanted
        self.found = found


class CreationStands(VersionConflict):
    """Another creation has the name of this one. `noted` is what the store kept of it."""

    def __init__(self, noted: str) -> None:
        super().__init__(0, 1)
        self.noted = noted


class KeyReused(DuetickError):
    """An idempotency key that came with another request before."""

    def __init__(self) -> None:
        super().__init__(
            "The Idempotency-Key came with another body before, and stands for what that made. "
            "Use a new one for a new schedule."
        )


class QuotaReached(Refusal):
    """A request beyond a limit of the deployment: the limit, its value, and advice for the caller.

    `field` names the field that exceeds the limit, if one does. `setting` is for operators: they
    can raise the limit, the caller cannot.
    """

    def __init__(
        self, limit: str, value: int, message: str, *, field: str = "", setting: str = ""
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.value = value
        self.setting = setting
        self._path: tuple[str | int, ...] = (field,) if field else ()

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        """See `Refusal`."""
        advice = f"{self.setting} sets the limit." if self.setting else ""
        return (Flaw(self._path, "quota_exceeded", str(self), advice),)


def refuse_schedule(at_most: int) -> QuotaReached:
    """Return the refusal of one more schedule."""
    return QuotaReached(
        "schedules",
        at_most,
        f"A user may have {at_most} schedules, and these are there. Delete one that is not needed.",
        setting="DUETICK_QUOTA_SCHEDULES",
    )


def refuse_job(at_most: int) -> QuotaReached:
    """Return the refusal of one more job."""
    return QuotaReached(
        "jobs",
        at_most,
        f"A user may have {at_most} jobs that have not ended, and these are there. Wait for some "
        "of them, or cancel one.",
        setting="DUETICK_QUOTA_JOBS",
    )


class RateReached(QuotaReached):
    """A request beyond a limit for each minute. The next minute begins in `seconds`."""

    def __init__(self, limit: str, value: int, seconds: int, message: str, setting: str) -> None:
        super().__init__(limit, value, message, setting=setting)
        self.seconds = seconds


class ActionFailed(DuetickError):
    """An action's own refusal, in words that its user may read.

    An action raises it. Of any other exception the user's history says only that the action failed.
    """


class LeaseLost(DuetickError):
    """An attempt was settled after its lease was lost; its effects were undone."""


class EffectsRefused(DuetickError):
    """A write of an action failed, or its condition did not hold: none of its writes was made."""


class NoTransactions(DuetickError):
    """A connection that commits each statement by itself was passed in."""


class PoisonedRow(DuetickError, ValueError):
    """An index row whose next time cannot be computed."""


class InvalidCursor(DuetickError, ValueError):
    """A cursor that no page carried."""


class InvalidQuery(DuetickError, ValueError):
    """A query that no index answers."""


class ConfigurationError(DuetickError):
    """A setting is missing or contradicts another."""


class MissingSetting(ConfigurationError, KeyError):
    """A flow asks for a setting that its deployment does not have."""

    __str__ = Exception.__str__
