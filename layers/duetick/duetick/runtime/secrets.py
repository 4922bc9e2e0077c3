"""The secrets of secret mode: two may be live, so that a rotation loses no fire.

During a rotation the old and the new one are both accepted. A sender that still has the old one
is understood; a receiver that does not know the new one yet looks again before it refuses, at
most once in a few seconds, so that guessing costs the one who guesses.
"""

import hmac
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

Secrets: TypeAlias = tuple[str, ...]

KEPT_SECONDS: Final = 60
LOOK_AGAIN_SECONDS: Final = 5.0
PATIENCE: Final = 3.0
"""Seconds for the keeper's answer, twice: who waits for it has a call to send, or to answer."""


class SecretSource(Protocol):
    """Where the live secrets are, the newest first; none refuses everybody."""

    def __call__(self, *, fresh: bool = False) -> Secrets:
        """The secrets; `fresh` asks their keeper instead of memory."""


def given(secrets: Secrets) -> SecretSource:
    """Secrets from the environment: a new one comes with a new process."""

    def source(*, fresh: bool = False) -> Secrets:
        del fresh
        return secrets

    return source


def kept_in_secrets_manager(arn: str) -> SecretSource:
    """AWSCURRENT and, where there is one, AWSPREVIOUS: what a rotation leaves behind.

    A provider for each of them: what one remembers, it remembers by the secret's name alone.
    """
    from aws_lambda_powertools.utilities.parameters import SecretsProvider
    from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
    from botocore.config import Config

    stages = ("AWSCURRENT", "AWSPREVIOUS")
    patience = Config(
        connect_timeout=PATIENCE, read_timeout=PATIENCE, retries={"total_max_attempts": 2}
    )
    providers = {stage: SecretsProvider(boto_config=patience) for stage in stages}

    def stage(name: str, *, fresh: bool) -> str:
        try:
            found = providers[name].get(arn, KEPT_SECONDS, force_fetch=fresh, VersionStage=name)
        except GetParameterError:
            if name == "AWSCURRENT":
                raise
            return ""
        return found if isinstance(found, str) else ""

    def source(*, fresh: bool = False) -> Secrets:
        current = stage("AWSCURRENT", fresh=fresh)
        previous = stage("AWSPREVIOUS", fresh=fresh)
        return tuple(dict.fromkeys(f"{current} {previous}".split()))

    return source


class Guard:
    """Says whether a header carries a live secret, in a time that tells nothing of it."""

    def __init__(self, source: SecretSource, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._elapsed = elapsed
        self._looked_at = float("-inf")
        self._looking = threading.Lock()

    def admits(self, header: str) -> bool:
        """Whether this `Authorization` may come in."""
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret:
            return False
        if _known(secret, self._source()):
            return True
        with self._looking:  # who comes meanwhile is told by what is found
            if _known(secret, self._source()):
                return True
            if self._elapsed() - self._looked_at < LOOK_AGAIN_SECONDS:
                return False
            self._looked_at = self._elapsed()
            return _known(secret, self._source(fresh=True))


def _known(secret: str, live: Secrets) -> bool:
    """Compare with each, whatever the first comparison said."""
    sent = secret.encode(errors="surrogatepass")
    matches = [hmac.compare_digest(sent, each.encode()) for each in live]
    return any(matches)
