"""The everyday writes as functions of the database, so that the server keeps their plans.

Planning takes half of the time of a begin. A prepared statement would keep its plan, and pin its
connection to one client of a proxy. The plan of a function is kept by each connection that calls
it.

`migrate` makes a function of the very queries that it stands for, and its name has their digest. So
code of the release before finds its own functions, and code that finds none runs the queries
themselves.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Final, NamedTuple

from duetick.stores.sql.queries import load
from duetick.stores.sql.session import QueryCall, Row, Value

KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "begin": ("schedule_lock", "occurrence_begin", "schedule_get"),
    "move": ("occurrence_move_leased",),
    "move_traced": ("occurrence_move_leased_traced",),
}
"""The queries of each function, in their order. Each returns one row, or none."""

NUMBERS: Final = frozenset(
    {
        *("nominal_at", "due_at", "lease_until", "held_until", "now", "usual_lease_ms"),
        *("fence", "next_fence", "attempts"),
    }
)
"""The parameters that are numbers. The others are texts."""

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")


class Routine(NamedTuple):
    """A function of the database: its name, the statement that makes it, the query of a call."""

    name: str
    made: str
    query: str

    def call_with(self, calls: Sequence[QueryCall]) -> QueryCall:
        """Return the call that stands for the calls of its queries."""
        params: dict[str, Value] = {}
        for _, each in calls:
            params |= each
        return self.name, params


@cache
def routines() -> Mapping[tuple[str, ...], Routine]:
    """Return the functions by the queries that they stand for."""
    return {queries: _routine(name, queries) for name, queries in KEPT.items()}


@cache
def load_kept_queries() -> Mapping[str, str]:
    """Return the queries that call the functions, by the names of these."""
    return {one.name: one.query for one in routines().values()}


def read_answers(answer: Sequence[Mapping[str, Value] | None]) -> list[Sequence[Row]]:
    """Return the rows of each query, as the queries themselves would have returned them."""
    return [() if row is None else ([*row.values()],) for row in answer]


def _routine(name: str, queries: Sequence[str]) -> Routine:
    statements = [load("postgres")[query] for query in queries]
    names = [*dict.fromkeys(found for sql in statements for found in _PARAMETER.findall(sql))]
    types = ["bigint" if one in NUMBERS else "text" for one in names]
    body = "\n".join(_body([_by_number(sql, names) for sql in statements]))
    digest = blake2b(f"{types} {body}".encode(), digest_size=6).hexdigest()
    named = f"duetick_{name}_{digest}"
    taken, given = ", ".join(types), ", ".join(f":{one}" for one in names)
    made = f"CREATE FUNCTION {named}({taken}) RETURNS json LANGUAGE plpgsql AS $${body}$$"
    return Routine(named, made, f"SELECT {named}({given})")


def _by_number(sql: str, names: Sequence[str]) -> str:
    return _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)


def _body(statements: Sequence[str]) -> Iterator[str]:
    places = range(1, len(statements) + 1)
    yield "DECLARE " + " ".join(f"row_{n} record; told_{n} json;" for n in places)
    yield "BEGIN"
    for n, sql in enumerate(statements, 1):
        yield f"{sql} INTO row_{n};"
        yield f"IF FOUND THEN told_{n} := row_to_json(row_{n}); END IF;"
    yield f"RETURN json_build_array({', '.join(f'told_{n}' for n in places)});"
    yield "END"
