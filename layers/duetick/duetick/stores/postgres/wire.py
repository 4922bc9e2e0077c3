"""Statements on one connection of pg8000: each is one round trip, while pg8000's `run` makes three.

The parse, the parameters and the call travel together. The opening of a transaction travels before
its first statement. The messages are written here: pg8000 asks the server after each of them to
send what it has, which wakes both sides once for each. This module knows no names of queries, no
pools and no retries.
"""

import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple, TypeAlias, cast

from pg8000.converters import make_params
from pg8000.core import CoreConnection
from pg8000.exceptions import DatabaseError, Error
from pg8000.native import to_statement

from duetick.domain.errors import DuetickError, InvalidSchedule
from duetick.domain.schedule import HALF_A_PAIR
from duetick.stores.postgres.errors import (
    ConnectionLost,
    InDoubt,
    connection_is_over,
    is_of_names,
    report_lost,
    translate,
)
from duetick.stores.sql.session import Params, Row, Value


def message(kind: bytes, body: bytes) -> bytes:
    """Return a message of the protocol: its kind, its length, its body."""
    return kind + (len(body) + 4).to_bytes(4, "big") + body


UNNAMED: Final = b"\0"
AS_TEXT: Final = bytes(2)
DESCRIBE: Final = message(b"D", b"S" + UNNAMED)
DESCRIBE_CALL: Final = message(b"D", b"P" + UNNAMED)
EXECUTE: Final = message(b"E", UNNAMED + bytes(4))
SYNC: Final = message(b"S", b"")
NULL: Final = (-1).to_bytes(4, "big", signed=True)
ROW_DESCRIPTION: Final = b"T"
DESCRIPTIONS: Final = 200
"""The number of statements whose columns a connection remembers."""

BATCH: Final = 200
"""The number of calls of one statement that travel together: the answers must fit a socket's
buffers.
"""

SEVERAL: Final = 32
"""The number of statements that travel together."""


Statement: TypeAlias = tuple[str, Params]
"""SQL with `:name` parameters, and their values."""

Order: TypeAlias = Callable[[Params], Sequence[Value]]
"""A function that puts named parameters into the order of their places."""


class Compiled(NamedTuple):
    """A statement as the server takes it, and the function that orders its named parameters."""

    sql: bytes
    order: Order

    def parse(self, name: bytes = UNNAMED) -> bytes:
        """Return the message that parses the statement under a name."""
        return message(b"P", name + self.sql + AS_TEXT)


@cache
def compile_sql(sql: str, encoding: str) -> Compiled:
    """Compile a statement with named parameters."""
    statement, order = to_statement(sql)
    return Compiled(str(statement).encode(encoding) + b"\0", cast("Order", order))


def call(values: Sequence[str | None], encoding: str, name: bytes = UNNAMED) -> bytes:
    """Return the messages that run a parsed statement with these values."""
    parts = [UNNAMED, name, AS_TEXT, len(values).to_bytes(2, "big")]
    for value in values:
        if value is None:
            parts.append(NULL)
        else:
            text = value.encode(encoding)
            parts += (len(text).to_bytes(4, "big"), text)
    parts.append(AS_TEXT)
    bind = message(b"B", b"".join(parts))
    return bind + EXECUTE if name == UNNAMED else bind + DESCRIBE_CALL + EXECUTE


def remember_columns(connection: CoreConnection) -> None:
    """Let a connection read the columns of a statement once.

    The server describes them with each answer, by the same bytes.
    """
    read = connection.message_types[ROW_DESCRIPTION]

    @lru_cache(maxsize=DESCRIPTIONS)
    def columns(description: bytes) -> ServerReply:
        reply = ServerReply("")
        read(description, reply)
        return reply

    def describe(description: bytes, reply: ServerReply) -> None:
        known = columns(description)
        reply.columns, reply.input_funcs = known.columns, known.input_funcs
        if reply.rows is None:
            reply.rows = []

    connection.message_types[ROW_DESCRIPTION] = describe


@contextmanager
def nothing_unsent(connection: CoreConnection) -> Iterator[None]:
    """Close pg8000's buffer after the block.

    Otherwise the garbage collector would try once more to send the bytes that a dead server did not
    take.
    """
    stream = getattr(connection, "_sock", None)
    try:
        yield
    finally:
        if stream is not None:
            with suppress(OSError):
                stream.close()


class ServerReply:
    """The answers that arrive together, one for each statement.

    pg8000 fills this object in. Its own context adds the counts up and keeps the last answer.
    """

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self.rows: list[Row] | None = None
        self.answers: list[Sequence[Row]] = []
        self.counts: list[int] = []
        self.columns: Sequence[Mapping[str, object]] | None = None
        self.input_funcs: Sequence[Callable[[str], object]] = ()
        self.stream = None
        self.error: Exception | None = None

    @property
    def row_count(self) -> int:
        """The value that means to pg8000 that no rows are counted yet."""
        return -1

    @row_count.setter
    def row_count(self, count: int) -> None:
        self.counts.append(count)
        self.answers.append(self.rows or ())
        self.rows = None


@dataclass(slots=True)
class Exchange:
    """One round trip: the opening of a transaction, statements, and the end of it."""

    opening: ServerReply | None
    answer: ServerReply
    ending: ServerReply | None = None
    sent: bool = False

    @property
    def told(self) -> Exception | None:
        """The server's error before the end, if there is one: then nothing was committed."""
        return (self.opening and self.opening.error) or self.answer.error

    def blame(self, error: DuetickError) -> DuetickError:
        """Return the error; or InDoubt, if a COMMIT was sent and no answer came."""
        if isinstance(error, ConnectionLost) and self.sent and self.ending and not self.told:
            return InDoubt(error)
        return error


class Wire:
    """One connection. `sound` is false while it is in use, and once it may be out of step."""

    def __init__(self, connection: CoreConnection) -> None:
        self._connection = connection
        self._opening = ""
        self._ended = False
        self._names: dict[str, bytes] = {}
        self._keeps = self._may_keep = True
        self.sound = True

    def begin(self, sql: str, *, keeps: bool = False) -> None:
        """Open a transaction: `sql` travels with the next statement.

        If it `keeps` its statements, the server parses and plans each once for the connection. A
        proxy cannot lend such a connection to others: only a tick may ask for it.
        """
        self._opening, self._ended = sql, False
        self._keeps = keeps and self._may_keep

    def run(self, sql: str, params: Params) -> Sequence[Row]:
        """Run one statement; return its rows."""
        (rows,) = self.run_several([(sql, params)])
        return rows

    def run_several(self, statements: Sequence[Statement]) -> Sequence[Sequence[Row]]:
        """Run statements one after another, `SEVERAL` to a round trip; return the rows of each.

        The server counts no rows of a statement such as EXPLAIN. It must stand alone.
        """
        answers: list[Sequence[Row]] = []
        for start in range(0, len(statements), SEVERAL):
            together = statements[start : start + SEVERAL]
            with self._exchange(ServerReply(together[0][0])) as exchange:
                self._send([(sql, [params]) for sql, params in together])
                self._receive(exchange)
            answers += exchange.answer.answers or [exchange.answer.rows or ()]
        return answers

    def start(self, statements: Sequence[Statement]) -> Callable[[], Sequence[Sequence[Row]]]:
        """Run statements, `SEVERAL` at most, in one round trip. Return a function that returns the
        rows of each.
        """
        with self._exchange(ServerReply(statements[0][0])) as exchange:
            self._send([(sql, [params]) for sql, params in statements])
            self._flush(exchange)

        def answers() -> Sequence[Sequence[Row]]:
            with self._translating(exchange):
                self._receive(exchange)
            return exchange.answer.answers

        return answers

    def run_each(self, sql: str, params: Sequence[Params]) -> Sequence[int]:
        """Run a statement for each set of parameters, `BATCH` of them to a round trip.

        Return how many rows each run changed.
        """
        answer = ServerReply(sql)
        for start in range(0, len(params), BATCH):
            with self._exchange(answer) as exchange:
                self._send([(sql, params[start : start + BATCH])])
                self._receive(exchange)
        return answer.counts

    def run_last(self, statements: Sequence[Statement]) -> Callable[[], Sequence[Sequence[Row]]]:
        """Run statements, and COMMIT after the last, in one round trip if there are few.

        Return a function that returns the rows of each.
        """
        before = self.run_several(statements[:-SEVERAL])
        last = statements[-SEVERAL:]
        self._ended = True
        with self._exchange(ServerReply(last[0][0]), ServerReply("COMMIT")) as exchange:
            self._send([(sql, [params]) for sql, params in last])
            self._connection.send_QUERY("COMMIT")
            self._flush(exchange)

        def answers() -> Sequence[Sequence[Row]]:
            with self._translating(exchange):
                self._receive(exchange)
            return [*before, *exchange.answer.answers]

        return answers

    def script(self, sql: str) -> None:
        """Run any number of statements without parameters."""
        with self._exchange(ServerReply(sql)) as exchange:
            self._connection.send_QUERY(sql)
            self._receive(exchange)

    def end(self, sql: str) -> None:
        """End the transaction, unless it was never opened or its end was sent already."""
        if self._ended or self._opening:
            self._opening = ""
            return
        try:
            self.script(sql)
        except ConnectionLost as error:
            raise InDoubt(error) from error.__cause__

    def silent(self) -> bool:
        """Return True if the server sent nothing. To an idle connection it only sends an end."""
        ready = select.poll()
        ready.register(self._connection._usock, select.POLLIN)
        return not ready.poll(0)

    def close(self) -> None:
        """Close the connection, whether or not the server still listens."""
        with suppress(Error, OSError), nothing_unsent(self._connection):
            self._connection.close()

    @contextmanager
    def _exchange(
        self, answer: ServerReply, ending: ServerReply | None = None
    ) -> Iterator[Exchange]:
        """Send the opening of the transaction, if it is due, and let the block send the rest."""
        statement, self._opening = self._opening, ""
        exchange = Exchange(ServerReply(statement) if statement else None, answer, ending)
        with self._translating(exchange):
            if statement:
                self._connection.send_QUERY(statement)
            yield exchange

    @contextmanager
    def _translating(self, exchange: Exchange) -> Iterator[None]:
        """Raise the errors of the block as ours, and note whether the connection is in step."""
        self.sound = False
        try:
            yield
        except DatabaseError as error:
            in_step = exchange.opening is None or exchange.opening.error is None
            self.sound = in_step and not connection_is_over(error)
            self._names.clear()
            self._may_keep = self._may_keep and not is_of_names(error)
            raise exchange.blame(translate(error)) from error
        except UnicodeEncodeError as error:
            raise InvalidSchedule("text", f"holds {HALF_A_PAIR}", "character") from error
        except (Error, OSError, AttributeError) as error:
            raise exchange.blame(report_lost(error, exchange.told)) from error

    def _send(self, statements: Sequence[tuple[str, Sequence[Params]]]) -> None:
        """Write each statement with all its calls."""
        encoding, types = self._connection._client_encoding, self._connection.py_types
        for sql, calls in statements:
            known = compile_sql(sql, encoding)
            name, parse = self._name(sql, known)
            values = (make_params(types, known.order(params)) for params in calls)
            runs = b"".join(call(each, encoding, name) for each in values)
            self._connection._sock.write(parse + runs)
        self._connection._sock.write(SYNC)

    def _name(self, sql: str, known: Compiled) -> tuple[bytes, bytes]:
        """Return the name of a statement on this connection, and the messages that make it known.

        After an error the names that the server has are unknown. To close a name that it does not
        have is no error.
        """
        if not self._keeps:
            return UNNAMED, known.parse() + DESCRIBE
        if sql in self._names:
            return self._names[sql], b""
        name = self._names[sql] = f"duetick_{len(self._names)}".encode() + b"\0"
        return name, message(b"C", b"S" + name) + known.parse(name)

    def _flush(self, exchange: Exchange) -> None:
        """Send the buffered bytes. The COMMIT is last, so before this nothing is in doubt."""
        self._connection._sock.flush()
        exchange.sent = True

    def _receive(self, exchange: Exchange) -> None:
        """Receive all answers. If a statement failed, the COMMIT becomes a ROLLBACK."""
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
