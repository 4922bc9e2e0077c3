"""Statements on one connection of pg8000: each is one round trip, where its own `run` makes three.

The parse, the parameters and the call travel together, and the opening of the transaction ahead of
the first of them. Nothing here knows of names, pools or retries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final, cast

from pg8000.converters import make_params
from pg8000.core import CoreConnection
from pg8000.exceptions import DatabaseError, Error
from pg8000.native import to_statement

from duetick.domain.errors import InvalidSchedule
from duetick.stores.postgres.errors import connection_is_over, lost, translate
from duetick.stores.sql.session import Params, Row, Value

UNNAMED: Final = b"\0"
SYNC: Final = b"S"
BATCH: Final = 200
"""How many calls travel together: what they answer must fit the buffers of a socket."""


@cache
def compiled(sql: str) -> tuple[str, Callable[[Params], Sequence[Value]]]:
    """The statement with $1, $2, …, and what puts named parameters in their order."""
    statement, order = to_statement(sql)
    return str(statement), cast("Callable[[Params], Sequence[Value]]", order)


class Answer:
    """What pg8000 fills in as an answer arrives; it adds counts up, here each one is kept."""

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self.rows: list[Row] | None = None
        self.counts: list[int] = []
        self.columns: Sequence[Mapping[str, object]] | None = None
        self.input_funcs: Sequence[Callable[[str], object]] = ()
        self.stream = None
        self.error: Exception | None = None

    @property
    def row_count(self) -> int:
        """What pg8000 takes for nothing counted yet."""
        return -1

    @row_count.setter
    def row_count(self, count: int) -> None:
        self.counts.append(count)


class Wire:
    """One connection. `sound` is false while, or once, it may be out of step."""

    def __init__(self, connection: CoreConnection) -> None:
        self._connection = connection
        self._opening = ""
        self.sound = True

    def begin(self, sql: str) -> None:
        """Open a transaction, together with the first statement to come."""
        self._opening = sql

    def run(self, sql: str, params: Params) -> Answer:
        """One statement."""
        return self.run_each(sql, [params])

    def run_each(self, sql: str, params: Sequence[Params]) -> Answer:
        """The same statement for each set of parameters, `BATCH` of them to a round trip."""
        statement, order = compiled(sql)
        answer = Answer(statement)
        for start in range(0, len(params), BATCH):
            with self._exchange(answer):
                self._call(statement, [order(one) for one in params[start : start + BATCH]])
        return answer

    def script(self, sql: str) -> None:
        """Statements without parameters, as many as there are."""
        with self._exchange(Answer(sql)):
            self._connection.send_QUERY(sql)

    def end(self, sql: str) -> None:
        """Close the transaction, unless nothing ever opened it."""
        if self._opening:
            self._opening = ""
        else:
            self.script(sql)

    def close(self) -> None:
        """Say goodbye, if anybody listens."""
        with suppress(Error, OSError):
            self._connection.close()

    @contextmanager
    def _exchange(self, answer: Answer) -> Iterator[None]:
        """Send what the block writes; read everything that it and the opening are answered."""
        opening, self._opening = Answer(self._opening), ""
        self.sound = False
        try:
            if opening.statement:
                self._connection.send_QUERY(opening.statement)
            yield
            self._connection._sock.flush()
            if opening.statement:
                self._connection.handle_messages(opening)
            self._connection.handle_messages(answer)
        except DatabaseError as error:
            self.sound = opening.error is None and not connection_is_over(error)
            raise translate(error) from error
        except UnicodeEncodeError as error:
            raise InvalidSchedule("text", f"cannot be written as UTF-8: {error.reason}.") from error
        except (Error, OSError, AttributeError) as error:
            raise lost(error, opening.error or answer.error) from error
        self.sound = True

    def _call(self, statement: str, calls: Sequence[Sequence[Value]]) -> None:
        connection = self._connection
        connection.send_PARSE(UNNAMED, statement)
        connection.send_DESCRIBE_STATEMENT(UNNAMED)
        for values in calls:
            connection.send_BIND(UNNAMED, make_params(connection.py_types, values))
            connection.send_EXECUTE()
        connection._send_message(SYNC, b"")
