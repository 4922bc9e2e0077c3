"""The secrets of secret mode. Two may be live, so that a rotation loses no fire.

During a rotation the old and the new secret are both accepted: a sender may still use the old one.
If a receiver does not know a secret, it reads the live ones again before it refuses. It does so at
most once in a few seconds, so that guesses cost it little.
"""

import hmac
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from duetick.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.parameters import SecretsProvider

SecretTexts: TypeAlias = tuple[str, ...]

KEPT_SECONDS: Final = 60
LOOK_AGAIN_SECONDS: Final = 5.0
LEAST_CHARACTERS: Final = 32
PATIENCE: Final = 3.0
"""Seconds for each of two tries to read a secret: a call waits for it."""


class SecretSource(Protocol):
    """A function that returns the live secrets, the newest first. Without any, all are refused."""

    def __call__(self, *, fresh: bool = False) -> SecretTexts:
        """Return the secrets. If `fresh`, ask the place that keeps them, not memory."""


def read_secret(kept: str) -> str:
    """Return the dispatch secret from a text: the whole of it, or `secret` if it is JSON.

    Raise ConfigurationError if it is short enough to guess, or if no header can carry it.
    """
    text = field_of(kept, "secret", "dispatch")
    if len(text) < LEAST_CHARACTERS:
        raise ConfigurationError(
            f"The dispatch secret has {len(text)} characters, and {LEAST_CHARACTERS} are the least."
            " Generate a random one."
        )
    if not all("!" <= character <= "~" for character in text):
        raise ConfigurationError(
            "The dispatch secret holds white space, or a character that no header carries. Keep "
            "letters, digits and ASCII signs alone, with no line's end behind them."
        )
    return text


def field_of(kept: str, field: str, owner: str) -> str:
    """Return a text. If it is JSON, return its string, or the string of one field of its object.

    `owner` names the secret. A text that begins with a quote may still be no JSON.
    """
    if not kept.startswith(("{", '"')):
        return kept
    try:
        found = json.loads(kept)
        found = found[field] if isinstance(found, dict) else found
    except (ValueError, KeyError):
        found = kept if kept.startswith('"') else None
    if not isinstance(found, str):
        raise ConfigurationError(
            f"The secret of {owner} begins as JSON does, and has no text as its field `{field}`."
        )
    return found


def fixed_source(secrets: SecretTexts) -> SecretSource:
    """Return a source of secrets from the environment: a new secret needs a new process."""

    def source(*, fresh: bool = False) -> SecretTexts:
        del fresh
        return secrets

    return source


def secrets_manager_source(arn: str) -> SecretSource:
    """Return a source of AWSCURRENT and, if a rotation left one, AWSPREVIOUS.

    Each is the whole text, or `secret` if it is JSON. A bad AWSCURRENT raises. A bad AWSPREVIOUS is
    not live, so that a rotation repairs a bad secret.

    Each stage has its own provider: a provider's cache knows a secret by its name alone.
    """
    from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError

    providers = {stage: patient_provider() for stage in ("AWSCURRENT", "AWSPREVIOUS")}

    def stage(name: str, *, fresh: bool) -> str:
        try:
            found = providers[name].get(arn, KEPT_SECONDS, force_fetch=fresh, VersionStage=name)
        except GetParameterError:
            if name == "AWSCURRENT":
                raise
            return ""
        text = found if isinstance(found, str) else ""
        return read_secret(text)

    def source(*, fresh: bool = False) -> SecretTexts:
        live = [stage("AWSCURRENT", fresh=fresh)]
        with suppress(ConfigurationError):
            live.append(stage("AWSPREVIOUS", fresh=fresh))
        return tuple(dict.fromkeys(filter(None, live)))

    return source


def patient_provider() -> "SecretsProvider":
    """Return a reader of Secrets Manager that tries twice, with a cache of its own."""
    from aws_lambda_powertools.utilities.parameters import SecretsProvider
    from botocore.config import Config

    patience = Config(
        connect_timeout=PATIENCE, read_timeout=PATIENCE, retries={"total_max_attempts": 2}
    )
    return SecretsProvider(boto_config=patience)


class Guard:
    """A check whether a header has a live secret. Its duration reveals nothing about the secret."""

    def __init__(self, source: SecretSource, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._elapsed = elapsed
        self._looked_at = float("-inf")
        self._looking = threading.Lock()

    def admits(self, header: str) -> bool:
        """Return True if this `Authorization` header has a live secret."""
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret:
            return False
        if _is_live(secret, self._source()):
            return True
        with self._looking:  # threads that waited here use the secrets that the first one found
            if _is_live(secret, self._source()):
                return True
            if self._elapsed() - self._looked_at < LOOK_AGAIN_SECONDS:
                return False
            self._looked_at = self._elapsed()
            return _is_live(secret, self._source(fresh=True))


def _is_live(secret: str, live: SecretTexts) -> bool:
    """Compare with each secret, even after a match: the duration must reveal nothing."""
    sent = secret.encode(errors="surrogatepass")
    matches = [hmac.compare_digest(sent, each.encode()) for each in live]
    return any(matches)
