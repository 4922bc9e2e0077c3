"""The places of a witness: a parameter of Systems Manager, or a file beside a SQLite file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from duetick.domain.errors import ConfigurationError, WitnessUnavailable
from duetick.ports import Witness

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.parameters import SSMProvider

PARAMETER: Final = "ssm:"
SUFFIX: Final = ".witness"
PATIENCE: Final = 2.0
"""Seconds for each of two tries to reach the parameter: a tick waits for it."""


def open_witness(setting: str, store: str) -> Witness | None:
    """Return the witness of a setting, such as `ssm:name`.

    Without a setting, a SQLite file has a file beside it, and any other store has no witness.
    """
    if setting:
        kind, _, name = setting.partition(":")
        if kind != PARAMETER.rstrip(":") or not name:
            raise ConfigurationError(f"DUETICK_WITNESS is ssm:NAME, not {setting[:40]!r}.")
        return ParameterWitness(name)
    return beside(store)


def beside(store: str) -> "FileWitness | None":
    """Return the witness beside the SQLite file at an address; None for any other store."""
    parts = urlsplit(store)
    file = unquote(parts.path)[1:]
    if parts.scheme != "sqlite" or parts.netloc or file in ("", ":memory:"):
        return None
    return FileWitness(Path(file + SUFFIX))


class FileWitness:
    """A witness in a file. A backup must leave it out, or it is restored with the store."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        """See `ports.Witness`."""
        try:
            return _instant(self._path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise WitnessUnavailable(f"{self._path} cannot be read: {error.strerror}.") from error

    def write(self, at: int) -> None:
        """See `ports.Witness`. A crash leaves the old instant or the new one."""
        fresh = self._path.with_name(f"{self._path.name}.new")
        try:
            fresh.write_text(f"{at}\n", encoding="ascii")
            os.replace(fresh, self._path)
        except OSError as error:
            raise WitnessUnavailable(
                f"{self._path} cannot be written: {error.strerror}."
            ) from error


class ParameterWitness:
    """A witness in a parameter. The modules that reach AWS are imported at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._opened: SSMProvider | None = None

    def read(self) -> int | None:
        """See `ports.Witness`."""
        try:
            return _instant(str(self._provider().get(self._name, force_fetch=True)))
        except Exception as error:
            raise self._unavailable("read", error) from error

    def write(self, at: int) -> None:
        """See `ports.Witness`."""
        try:
            self._provider().set(self._name, str(at), overwrite=True)
        except Exception as error:
            raise self._unavailable("written", error) from error

    def _provider(self) -> "SSMProvider":
        if self._opened is None:
            from aws_lambda_powertools.utilities.parameters import SSMProvider
            from botocore.config import Config

            patience = Config(
                connect_timeout=PATIENCE, read_timeout=PATIENCE, retries={"total_max_attempts": 2}
            )
            self._opened = SSMProvider(boto_config=patience)
        return self._opened

    def _unavailable(self, done: str, error: Exception) -> WitnessUnavailable:
        return WitnessUnavailable(
            f"The parameter {self._name} cannot be {done}. It must be there, and the function "
            f"needs the right and, in a VPC, a way to Systems Manager. ({error})"
        )


def _instant(kept: str) -> int | None:
    """Return the instant of a text; None for 0, with which a stack begins."""
    if not kept.strip().isdecimal():
        raise WitnessUnavailable(f"The witness holds {kept[:20]!r}, which is no instant.")
    return int(kept) or None
