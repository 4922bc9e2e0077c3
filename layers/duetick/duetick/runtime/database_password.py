"""The database's password, where Secrets Manager keeps it: never in the environment."""

import json
from typing import Final

from aws_lambda_powertools.utilities.parameters import SecretsProvider

from duetick.domain.errors import ConfigurationError
from duetick.ports import Store
from duetick.stores.postgres.connecting import Password
from duetick.stores.postgres.store import open_postgres

KEPT_SECONDS: Final = 60
"""A new password is known after this time at the latest; connections that are open stay open."""


def open_with_secret(address: str, arn: str, *, look_ahead: bool = False) -> Store:
    """The Postgres at an address, whose password a secret holds."""
    password = kept_in_secrets_manager(arn)
    return open_postgres(address, password=password, look_ahead=look_ahead)


def kept_in_secrets_manager(arn: str) -> Password:
    """The secret's text, or the `password` in it where it is JSON, as RDS writes it."""
    provider = SecretsProvider()

    def password() -> str:
        return read_password(str(provider.get(arn, KEPT_SECONDS)))

    return password


def read_password(secret: str) -> str:
    """The password that a secret's text holds."""
    try:
        password = json.loads(secret)["password"] if secret.startswith("{") else secret
    except (ValueError, KeyError):
        raise ConfigurationError(
            "The secret of the database begins as JSON does, and has no field `password`."
        ) from None
    if not password:
        raise ConfigurationError("The secret of the database holds an empty password.")
    return str(password)
