"""The settings of flows: the words of a deployment for its actions, and the texts of its secret."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TypeVar, cast

from duetick.domain.errors import ConfigurationError, InvalidSchedule, MissingSetting, sentence
from duetick.domain.redaction import Secrets
from duetick.domain.schedule import Json

Shape = TypeVar("Shape")

PLACE: Final = (
    "The settings are the stack's parameter Settings, settings.local.json of a local stack, and "
    "`settings` of `fire` and `Stage` in a test."
)
PLACE_OF_SECRETS: Final = (
    "They are in the secret of the stack's parameter SettingsSecretArn, in secrets.local.json of a "
    "local stack, and in `secrets` of `fire` and `Stage` in a test."
)


class SettingsSecret(Protocol):
    """A function that returns the texts of the settings' secret by their names."""

    def __call__(self, *, fresh: bool = False) -> Mapping[str, str]:
        """Return the texts. If `fresh`, ask the place that keeps them, not memory."""


class FlowSettings(Mapping[str, Json]):
    """The settings of a deployment's flows, by name. The secret is asked at its first use."""

    __slots__ = ("_given", "_secret", "_seen")

    def __init__(
        self, given: Mapping[str, Json] | None = None, secret: SettingsSecret | None = None
    ) -> None:
        self._given = dict(given or {})
        self._secret = secret
        self._seen = set[str]()

    def __getitem__(self, name: str) -> Json:
        if name not in self._given:
            known = ", ".join(sorted(self._given)) or "none"
            raise MissingSetting(f"There is no setting {name!r}; known are: {known}. {PLACE}")
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __repr__(self) -> str:
        """Tell the names alone: a value may be a secret."""
        return f"FlowSettings({', '.join(sorted(self._given))})"

    def read(self, shape: type[Shape]) -> Shape:
        """Return the settings as a dataclass or a pydantic model. Settings that it does not name
        are another flow's. Raise ConfigurationError with the fields that do not fit.
        """
        from duetick.core.inputs import settings_type

        takes = settings_type(shape)
        try:
            read = cast("Shape", takes.read_part(self._given))
        except InvalidSchedule as problem:
            whole = " ".join(sentence(str(flaw)) for flaw in problem.flaws)
            told = Secrets.of(self._given).without(whole, "a value does not fit.")
            raise ConfigurationError(
                f"The settings do not fit {shape.__name__}. {told} {PLACE}"
            ) from None
        return read

    def secret(self, name: str, *, fresh: bool = False) -> str:
        """Return a text of the settings' secret. It is kept for a minute; `fresh` asks anew."""
        if self._secret is None:
            raise ConfigurationError(f"There are no secrets of settings. {PLACE_OF_SECRETS}")
        found = self._secret(fresh=fresh)
        if name not in found and not fresh:
            found = self._secret(fresh=True)
        self._seen.update(found.values())
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise ConfigurationError(
                f"There is no secret {name!r}; known are: {known}. {PLACE_OF_SECRETS}"
            )
        return found[name]

    def withheld(self) -> Json:
        """Return the settings and the texts of the secret that were read: no error may show them.

        The settings are there for their secret names. None if there are neither.
        """
        if not self._given and not self._seen:
            return None
        return {"settings": dict(self._given), "secret": [*sorted(self._seen)]}
