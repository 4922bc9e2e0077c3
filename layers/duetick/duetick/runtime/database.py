"""The Postgres of the settings.

Its password is in Secrets Manager, never in the environment. The owner of its schema may be another
user than the one that the functions connect as.
"""

from typing import TYPE_CHECKING, Final

from aws_lambda_powertools.utilities.parameters import SecretsProvider

from duetick.core.store import Store
from duetick.domain.cadence import EACH_MINUTE
from duetick.domain.errors import ConfigurationError
from duetick.runtime.secrets import field_of
from duetick.runtime.settings import Settings
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.connecting import Password
from duetick.stores.postgres.shelf import open_postgres

if TYPE_CHECKING:
    from duetick.core.managed.watched import Followers

KEPT_SECONDS: Final = 60
"""The longest time until a new password is read. Open connections stay open."""


def open_with_secret(
    address: str,
    arn: str,
    *,
    look_ahead: bool = False,
    tick_seconds: int = EACH_MINUTE,
    followers: "Followers | None" = None,
) -> Store:
    """Open the Postgres at an address with the password from a secret."""
    password = password_from(arn)
    shelf = open_postgres(address, password=password)
    return Store(shelf, look_ahead=look_ahead, tick_seconds=tick_seconds, followers=followers)


def password_from(arn: str) -> Password:
    """Return a function that reads the password from the secret (see `read_password`)."""
    provider = SecretsProvider()

    def password() -> str:
        return read_password(str(provider.get(arn, KEPT_SECONDS)))

    return password


def read_password(secret: str) -> str:
    """Return a secret's text, or if it is JSON as RDS writes it, the `password` in it."""
    password = field_of(secret, "password", "the database")
    if not password:
        raise ConfigurationError("The secret of the database holds an empty password.")
    return password


def migrate_as_owner(chosen: Settings) -> int:
    """Update the schema as its owner, and grant the functions' user the rights that it needs.

    Return the number of rows that were taken over from an earlier index.
    """
    arn = chosen.owner_secret_arn
    owner = open_postgres(chosen.owner_store, password=password_from(arn) if arn else None)
    password = password_from(chosen.functions_secret_arn or chosen.store_secret_arn)
    try:
        taken_over = Store(owner).migrate()
        owner.admit(read_address(chosen.store).user, password)
    finally:
        owner.close()
    return taken_over
