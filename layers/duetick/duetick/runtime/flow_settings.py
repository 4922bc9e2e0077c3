"""The settings of flows in a deployment: a variable, and a secret of Secrets Manager."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from duetick.core.flow_settings import FlowSettings, SettingsSecret
from duetick.domain.errors import ConfigurationError
from duetick.runtime.settings import Settings

if TYPE_CHECKING:
    from duetick.domain.schedule import Json

KEPT_SECONDS: Final = 60


def open_flow_settings(chosen: Settings) -> FlowSettings:
    """Return the settings that the environment names. Nothing asks for the secret yet."""
    given = _read_object(chosen.flow_settings, "The settings of flows")
    return FlowSettings(given, _open_secret(chosen))


def _open_secret(chosen: Settings) -> SettingsSecret | None:
    if chosen.flow_settings_secret_arn:
        return _of_secrets_manager(chosen.flow_settings_secret_arn)
    if not chosen.flow_settings_secret:
        return None
    texts = read_texts(chosen.flow_settings_secret)

    def secret(*, fresh: bool = False) -> Mapping[str, str]:
        del fresh
        return texts

    return secret


def read_texts(kept: str) -> dict[str, str]:
    """Return the texts of a secret, by name. Raise ConfigurationError, which quotes no text."""
    found = _read_object(kept, "The secret of the flows' settings")
    texts = {name: text for name, text in found.items() if isinstance(text, str)}
    others = sorted(found.keys() - texts.keys())
    if others:
        raise ConfigurationError(
            f"The secret of the flows' settings holds what is no text: {', '.join(others)}."
        )
    return texts


def _read_object(text: str, what: str) -> "dict[str, Json]":
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigurationError(
            f'{what}: expected a JSON object, such as {{"sender": "me@example.com"}}.'
        )
    return found


def _of_secrets_manager(arn: str) -> SettingsSecret:
    from duetick.runtime.secrets import patient_provider

    provider = patient_provider()

    def secret(*, fresh: bool = False) -> Mapping[str, str]:
        found = provider.get(arn, KEPT_SECONDS, force_fetch=fresh)
        return read_texts(found if isinstance(found, str) else "")

    return secret
