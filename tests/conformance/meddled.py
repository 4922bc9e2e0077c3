"""A session of a broken store, in which single queries do something else."""

from collections.abc import Callable, Mapping, Sequence

from duetick.stores.sql.session import Params, Row, Session


class Meddled:
    """A session in which queries of one name do something else."""

    def __init__(self, session: Session, name: str = "", instead: Sequence[Row] = ()) -> None:
        self._session = session
        self._name = name
        self._instead = instead

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """Run it, unless it has that name."""
        return self._instead if name == self._name else self._session.rows(name, params)

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """Run it, unless it has that name."""
        return [1 for _ in params] if name == self._name else self._session.each(name, params)

    def last(self, name: str, params: Params) -> Callable[[], Sequence[Row]]:
        rows = self.rows(name, params)
        return lambda: rows

    def script(self, sql: str) -> None:
        """Run it."""
        self._session.script(sql)

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """Run it."""
        return self._session.run(sql, params)
