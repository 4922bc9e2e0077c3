"""Every error that Duetick raises on purpose. One base, one class for each condition."""

MIGRATE = "Run `duetick migrate`, or invoke the migrate function, then try again."


class DuetickError(Exception):
    """The base of all."""


class InvalidSchedule(DuetickError, ValueError):
    """A field of a schedule is wrong: what was expected, what came, what to do."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class InvalidStoreUrl(DuetickError, ValueError):
    """The address of a store cannot be read."""


class IllegalTransition(DuetickError):
    """A state may not follow another."""


class SchemaOutdated(DuetickError):
    """The database has no schema, or one that this code cannot use."""


class StoreUnavailable(DuetickError):
    """The database did not answer; the driver's own error is the cause."""


class NotPermitted(StoreUnavailable):
    """The database forbids it to whom we connect as: waiting does not help, a grant does."""


class NotAccepted(StoreUnavailable):
    """The database answers, and one side refuses the other: a login, a certificate, a name.

    Waiting helps no longer than what was only just made takes to be known.
    """


class ClockSkewed(DuetickError):
    """The host's clock is too far from the database's for anything to be claimed by it."""


class NotFound(DuetickError, LookupError):
    """No such schedule: it never was, it is gone, or it is another user's."""

    def __init__(self, message: str = "No such schedule.") -> None:
        super().__init__(message)


class VersionConflict(DuetickError):
    """The schedule was changed by someone else meanwhile, or is there already."""

    def __init__(self, wanted: int, found: int, *, tag: str | None = None) -> None:
        now = f"it has the ETag {tag} now" if tag else f"it has version {found} now"
        super().__init__(
            "There is none (any more), so that there is nothing to change."
            if not found
            else "There is one already: leave out the condition to replace it."
            if not wanted
            else f"It was changed meanwhile, {now}: read it again, then repeat the change."
        )
        self.wanted = wanted
        self.found = found


class KeyReused(DuetickError):
    """An idempotency key that came with another call before."""

    def __init__(self) -> None:
        super().__init__(
            "The Idempotency-Key came with another body before, and stands for what that made. "
            "Use a new one for a new schedule."
        )


class QuotaReached(DuetickError):
    """A limit that the deployment sets: which one, its value, and the way out."""

    def __init__(self, limit: str, value: int, message: str) -> None:
        super().__init__(message)
        self.limit = limit
        self.value = value


class LeaseLost(DuetickError):
    """An attempt was settled by whom nothing is leased to any more; its effects were undone."""


class EffectsRefused(DuetickError):
    """A write of an action's own could not be done, or its condition did not hold: none was."""


class NoTransactions(DuetickError):
    """A connection was given that commits each statement by itself."""


class PoisonedRow(DuetickError, ValueError):
    """An index row whose next time cannot be computed."""


class InvalidCursor(DuetickError, ValueError):
    """A page was asked for with a cursor that no answer carried."""


class InvalidQuery(DuetickError, ValueError):
    """Something was asked that no index answers."""


class ConfigurationError(DuetickError):
    """A setting is missing or contradicts another."""
