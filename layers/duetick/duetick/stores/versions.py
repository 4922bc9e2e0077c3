"""Whether a schema is one that this code can use."""

from duetick.domain.errors import MIGRATE, SchemaOutdated


def check_version(code: int, version: int, oldest_code: int) -> None:
    """Raise SchemaOutdated unless code of a version can use a schema of another."""
    if version < code:
        raise SchemaOutdated(
            f"The schema is at version {version}, this code needs {code}. {MIGRATE}"
        )
    if oldest_code > code:
        raise SchemaOutdated(
            f"The schema is at version {version} and serves code from version {oldest_code} "
            f"on; this code is of version {code}. Deploy a newer release."
        )
