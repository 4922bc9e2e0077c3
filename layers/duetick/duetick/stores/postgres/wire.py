"""Statements on one connection of pg8000: each is one round trip, where its own `run` makes three.

The parse, the parameters and the call travel together, and the opening of the transaction ahead of
the first of them. Nothing here knows of names, pools or retries.
"""

import selectors
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from pg8000.converters import make_params
from pg8000.core import CoreConnection
from pg8000.exceptions import DatabaseError, Error
from pg8000.native import to_statement

from duetick.domain.errors import DuetickError, InvalidSchedule
from duetick.stores.postgres.errors import (
    ConnectionLost,
    InDoubt,
    connection_is_over,
    lost,
    translate,
)
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


@contextmanager
def nothing_unsent(connection: CoreConnection) -> Iterator[None]:
    """After the block pg8000's buffer is closed: what a dead server did not take would else be
    tried once more as the connection is collected.
    """
    stream = getattr(connection, "_sock", None)
    try:
        yield
    finally:
        if stream is not None:
            with suppress(OSError):
                stream.close()


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


@dataclass(slots=True)
class Exchange:
    """What travels together: the opening of a transaction, a statement, the end."""

    opening: Answer | None
    answer: Answer
    ending: Answer | None = None
    sent: bool = False

    @property
    def told(self) -> Exception | None:
        """What went wrong before the end, as the server says: then nothing was committed."""
        return (self.opening and self.opening.error) or self.answer.error

    def blamed(self, error: DuetickError) -> DuetickError:
        """The error, or that nobody can know: a commit was sent, and no answer came."""
        if isinstance(error, ConnectionLost) and self.sent and self.ending and not self.told:
            return InDoubt(error)
        return error


class Wire:
    """One connection. `sound` is false while, or once, it may be out of step."""

    def __init__(self, connection: CoreConnection) -> None:
        self._connection = connection
        self._opening = ""
        self._ended = False
        self.sound = True

    def begin(self, sql: str) -> None:
        """Open a transaction, together with the first statement to come."""
        self._opening, self._ended = sql, False

    def run(self, sql: str, params: Params) -> Answer:
        """One statement."""
        return self.run_each(sql, [params])

    def run_each(self, sql: str, params: Sequence[Params]) -> Answer:
        """The same statement for each set of parameters, `BATCH` of them to a round trip."""
        statement, order = compiled(sql)
        answer = Answer(statement)
        for start in range(0, len(params), BATCH):
            with self._exchange(answer) as exchange:
                self._call(statement, [order(one) for one in params[start : start + BATCH]])
                self._hear(exchange)
        return answer

    def run_last(self, sql: str, params: Params) -> Callable[[], Answer]:
        """One statement and the COMMIT behind it, in one round trip; its answer when called."""
        statement, order = compiled(sql)
        self._ended = True
        with self._exchange(Answer(statement), Answer("COMMIT")) as exchange:
            self._call(statement, [order(params)])
            self._connection.send_QUERY("COMMIT")
            self._flush(exchange)

        def answer() -> Answer:
            with self._speaking(exchange):
                self._hear(exchange)
            return exchange.answer

        return answer

    def script(self, sql: str) -> None:
        """Statements without parameters, as many as there are."""
        with self._exchange(Answer(sql)) as exchange:
            self._connection.send_QUERY(sql)
            self._hear(exchange)

    def end(self, sql: str) -> None:
        """Close the transaction, unless nothing ever opened it, or its end travelled already."""
        if self._ended or self._opening:
            self._opening = ""
            return
        try:
            self.script(sql)
        except ConnectionLost as error:
            raise InDoubt(error) from error.__cause__

    def silent(self) -> bool:
        """Whether the server said nothing unasked: what it says to an idle one is goodbye."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._connection._usock, selectors.EVENT_READ)
            return not ready.select(0)

    def close(self) -> None:
        """Say goodbye, if anybody listens."""
        with suppress(Error, OSError), nothing_unsent(self._connection):
            self._connection.close()

    @contextmanager
    def _exchange(self, answer: Answer, ending: Answer | None = None) -> Iterator[Exchange]:
        """What the block sends, behind the opening of the transaction where that is to come."""
        statement, self._opening = self._opening, ""
        exchange = Exchange(Answer(statement) if statement else None, answer, ending)
        with self._speaking(exchange):
            if statement:
                self._connection.send_QUERY(statement)
            yield exchange

    @contextmanager
    def _speaking(self, exchange: Exchange) -> Iterator[None]:
        """What goes wrong in the block, in our words."""
        self.sound = False
        try:
            yield
        except DatabaseError as error:
            in_step = exchange.opening is None or exchange.opening.error is None
            self.sound = in_step and not connection_is_over(error)
            raise exchange.blamed(translate(error)) from error
        except UnicodeEncodeError as error:
            raise InvalidSchedule("text", f"cannot be written as UTF-8: {error.reason}.") from error
        except (Error, OSError, AttributeError) as error:
            raise exchange.blamed(lost(error, exchange.told)) from error

    def _call(self, statement: str, calls: Sequence[Sequence[Value]]) -> None:
        connection = self._connection
        connection.send_PARSE(UNNAMED, statement)
        connection.send_DESCRIBE_STATEMENT(UNNAMED)
        for values in calls:
            connection.send_BIND(UNNAMED, make_params(connection.py_types, values))
            connection.send_EXECUTE()
        connection._send_message(SYNC, b"")

    def _flush(self, exchange: Exchange) -> None:
        """The last bytes on their way are those of the end: before that nothing is in doubt."""
        self._connection._sock.flush()
        exchange.sent = True

    def _hear(self, exchange: Exchange) -> None:
        """Everything that is answered: a failed statement turns the COMMIT into a ROLLBACK."""
        if not exchange.sent:
            self._flush(exchange)
        if exchange.opening:
            self._connection.handle_messages(exchange.opening)
        try:
            self._connection.handle_messages(exchange.answer)
        except DatabaseError:
            if exchange.ending:
                exchange.ending.statement = "ROLLBACK"
                self._connection.handle_messages(exchange.ending)
            raise
        if exchange.ending:
            self._connection.handle_messages(exchange.ending)
        self.sound = True
