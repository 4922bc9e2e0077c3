"""One action of a flow, as it is declared."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from duetick.core.context import Context
from duetick.core.declarations import Transactional
from duetick.core.inputs import InputType
from duetick.core.promises import Declared
from duetick.domain.errors import Flaw, InvalidSchedule
from duetick.domain.redaction import Secrets, redact
from duetick.domain.schedule import Json

ActionFunction: TypeAlias = Callable[..., object]
Compute: TypeAlias = Callable[[Context], Json]

UNFIT: Final = "does not fit. The input is too deep or too large for the reason to be shown."


@dataclass(frozen=True, slots=True)
class Action:
    """A function of a flow, and the type of its input.

    `compute` makes the input of a schedule that has none. A `background` action runs in a separate
    invocation. `transactional` names the kind of `ctx.transaction()`, and promises that the
    transaction has every effect that must not happen twice. `withheld` are the names of secret
    fields of the input. Without `users`, the action runs only for the application. `declared` has
    the defaults of its schedules.
    """

    name: str
    run: ActionFunction
    takes: InputType
    compute: Compute | None = None
    background: bool = False
    transactional: Transactional = False
    withheld: frozenset[str] = frozenset()
    users: bool = True
    declared: Declared = field(default_factory=Declared)

    def preview(self, given: Json) -> Json:
        """Return an input without its secrets, for operators."""
        return redact(given, self.withheld)

    def secrets(self, given: Json) -> Secrets:
        """Return the secrets of an input. Texts that may quote the input are shown without them."""
        return Secrets.of(given, self.withheld)

    def read(self, given: Json) -> object:
        """Return the input as its declared type. A refusal quotes no secret of it."""
        try:
            return self.takes.read(given)
        except InvalidSchedule as problem:
            secrets = self.secrets(given)
            raise InvalidSchedule.of(
                Flaw(flaw.path, flaw.code, secrets.without(flaw.problem, UNFIT))
                for flaw in problem.flaws
            ) from None
