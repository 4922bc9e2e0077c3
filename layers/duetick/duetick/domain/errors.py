"""Every error that Duetick raises on purpose. One base, one class for each condition."""

MIGRATE = "Run `duetick migrate`, or invoke the migrate function, then try again."


class DuetickError(Exception):
    """The base of all."""


class InvalidSchedule(DuetickError, ValueError):
    """A field of a schedule is wrong: what was expected, what came, what to do."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class InvalidStoreUrl(DuetickError, ValueError):
    """The address of a store cannot be read."""


class IllegalTransition(DuetickError):
    """A state may not follow another."""


class SchemaOutdated(DuetickError):
    """The database has no schema, or one that this code cannot use."""


class StoreUnavailable(DuetickError):
    """The database did not answer; the driver's own error is the cause."""


class ClockSkewed(DuetickError):
    """The host's clock is too far from the database's for anything to be claimed by it."""


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
