"""A schema whose owner is another than whom the functions connect as."""

from duetick.runtime.database_password import kept_in_secrets_manager
from duetick.runtime.settings import Settings
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.store import open_postgres


def migrate_as_owner(chosen: Settings) -> None:
    """Bring the schema up to date, and let the functions' own user do what they need."""
    arn = chosen.owner_secret_arn
    owner = open_postgres(
        chosen.owner_store, password=kept_in_secrets_manager(arn) if arn else None
    )
    password = kept_in_secrets_manager(chosen.functions_secret_arn or chosen.store_secret_arn)
    try:
        owner.migrate()
        owner.admit(read_address(chosen.store).user, password)
    finally:
        owner.close()
