"""What an action may do in the transaction that settles it."""

from collections.abc import Mapping, Sequence
from typing import Any

from duetick.domain.errors import ConfigurationError
from duetick.stores.sql.session import Session


class SqlTransaction:
    """`ports.Transaction` in SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """See `ports.Transaction`."""
        return self._session.run(sql, params)

    def write(self, item: Mapping[str, Any], /) -> None:
        """See `ports.Transaction`."""
        del item
        raise ConfigurationError("This store is a SQL database: use run(sql, name=value).")
