"""The statements of an action in the transaction that settles it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from duetick.domain.errors import ConfigurationError, EffectsRefused
from duetick.ports import Alter, Dialect, Terms
from duetick.stores.sql.pages import keep_zones, load, zones_of
from duetick.stores.sql.session import Session
from duetick.stores.sql.terms import check_terms

T = TypeVar("T")

COMMENT: Final = r"/\*(?>.*?\*/)"
NESTED: Final = rf"/\*(?>[^*/]|\*(?!/)|/(?!\*)|{COMMENT})*+\*/"
BEFORE: Final = "|".join(rf"(?>\s|;|--[^\n]*\n|{one})*+" for one in (COMMENT, NESTED))
"""Blanks and comments before a statement: SQLite's comments, or Postgres's, which nest.

The expression never backtracks: a comment cannot reach to the end of the next one.
"""

ENDS: Final = re.compile(
    rf"(?:{BEFORE})(?:BEGIN|START|COMMIT|END|ABORT|PREPARE\s+TRANSACTION|"
    r"ROLLBACK(?!(?:\s+(?:WORK|TRANSACTION))?\s+TO\b))\b",
    re.IGNORECASE | re.DOTALL,
)
"""A statement that ends the transaction, so that effects and settle would be two."""

STAYS: Final = re.compile(
    rf"(?:{BEFORE})SET\s+(?!LOCAL\b|CONSTRAINTS\b|TRANSACTION\b)", re.IGNORECASE | re.DOTALL
)
"""A setting that would outlive the transaction, on a connection that others use next."""


class SqlTransaction:
    """`ports.Effects` in SQL."""

    dialect: Dialect = "sql"

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """See `ports.Transaction`."""
        if ENDS.match(sql):
            raise EffectsRefused(
                "The transaction ends with the `with` block, and settles the attempt. "
                "Raise to undo it; a savepoint may be rolled back to."
            )
        if STAYS.match(sql):
            raise EffectsRefused(
                "The setting would stay on a connection that others use. Write SET LOCAL."
            )
        return self._session.run(sql, params)

    def change(
        self, user_id: str, key: str, now: int, alter: Alter[T], terms: Terms | None = None
    ) -> T:
        """See `ports.Effects`."""
        del now
        if terms and terms.at_most is not None:
            self._session.rows("user_lock", {"user_id": user_id})
        loaded = load(self._session, (user_id, key), None)
        answer = alter(loaded.book)
        if terms:
            check_terms(self._session, loaded, terms)
        calls = [*keep_zones(zones_of(loaded.book)), *loaded.writes()]
        if calls:
            self._session.several(calls)
        return answer

    def write(self, item: Mapping[str, Any], /) -> None:
        """See `ports.Transaction`."""
        del item
        raise ConfigurationError("This store is a SQL database: use run(sql, name=value).")
