"""The rows of a table of others: of their database, or of a dump. Nothing is written there."""

import csv
import io
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from duetick.cli.problem import CliProblem
from duetick.cli.store_address import hide_secrets
from duetick.cli.transfer.documents import lines_of, objects
from duetick.domain.redaction import redact_text

SourceRow: TypeAlias = Mapping[str, Any]

SQLITE: Final = b"SQLite format 3\0"
MARK: Final = "\ufeff"
"""The mark with which spreadsheets begin a file in UTF-8."""

COPY: Final = re.compile(r'^COPY ([\w."]+) \(([^)]*)\) FROM stdin;$')
ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ESCAPED: Final = re.compile(r"\\(N|[bfnrtv]|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
KNOWN: Final = "sqlite:///file.db, postgresql://user@host/database"


def rows_of_database(url: str, queries: Sequence[str]) -> list[SourceRow]:
    """Return the rows of the first query that the database can answer."""
    scheme = url.partition("://")[0]
    if scheme == "sqlite":
        return _of_sqlite(Path(unquote(urlsplit(url).path)[1:]), queries)
    if scheme in ("postgresql", "postgres"):
        return _of_postgres(url, queries)
    raise CliProblem(f"No database is read at {hide_secrets(url)!r}; known are {KNOWN}.")


def rows_of_file(path: Path, tables: Sequence[str], queries: Sequence[str]) -> list[SourceRow]:
    """Return the rows of a dump: a file of SQLite, a plain dump of pg_dump, CSV or JSON Lines."""
    data = path.read_bytes()
    if data.startswith(SQLITE):
        return _of_sqlite(path, queries)
    try:
        text = data.decode().removeprefix(MARK)
    except UnicodeDecodeError as problem:
        raise CliProblem(f"{path} is no text, and no file of SQLite.") from problem
    if re.search(COPY.pattern, text, re.MULTILINE):
        return list(rows_of_dump(text, tables))
    first = text.lstrip()[:1]
    if first in ("{", "["):
        return list(_of_json(path, text))
    return list(csv.DictReader(io.StringIO(text)))


def _of_json(path: Path, text: str) -> Iterator[SourceRow]:
    for _, one in objects(str(path), text):
        if isinstance(one, dict):
            yield one


def rows_of_dump(text: str, tables: Sequence[str]) -> Iterator[SourceRow]:
    """Yield the rows that a plain dump copies into one of the tables."""
    columns: list[str] | None = None
    for line in lines_of(text):
        begin = COPY.match(line) if columns is None else None
        if begin:
            named = begin[1].replace('"', "").rpartition(".")[2]
            listed = [part.strip().strip('"') for part in begin[2].split(",")]
            columns = listed if named in tables else []
        elif line == "\\.":
            columns = None
        elif columns:
            cells = [_unescape(cell) for cell in line.split("\t")]
            if len(cells) != len(columns):
                raise CliProblem(
                    f"A row of the dump has {len(cells)} cells, and its table {len(columns)} "
                    "columns. Is the dump whole? pg_dump makes another."
                )
            yield dict(zip(columns, cells, strict=True))


def _unescape(cell: str) -> str | None:
    r"""Return a cell of a dump: `\N` is null."""
    if cell == "\\N":
        return None
    return ESCAPED.sub(lambda found: _character(found[1]), cell)


def _character(code: str) -> str:
    if code in ESCAPES:
        return ESCAPES[code]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else code


def _of_sqlite(path: Path, queries: Sequence[str]) -> list[SourceRow]:
    if not path.is_file():
        raise CliProblem(f"There is no file {path}.")
    where = f"file:{quote(str(path.absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(where, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return _first_answer(
                queries,
                lambda query: [dict(row) for row in connection.execute(query)],
                sqlite3.OperationalError,
            )
    except sqlite3.Error as problem:
        raise CliProblem(f"{path} cannot be read: {problem}.") from problem


def _of_postgres(url: str, queries: Sequence[str]) -> list[SourceRow]:
    from pg8000.exceptions import DatabaseError

    from duetick.stores.postgres.address import read_address
    from duetick.stores.postgres.connecting import connect_to

    with closing(connect_to(read_address(url))()) as connection:

        def ask(query: str) -> list[SourceRow]:
            connection.run("BEGIN READ ONLY")
            try:
                found = connection.run(query)
                names = [column["name"] for column in connection.columns or ()]
            finally:
                connection.run("ROLLBACK")
            return [dict(zip(names, row, strict=True)) for row in found]

        return _first_answer(queries, ask, DatabaseError)


def _first_answer(
    queries: Sequence[str], ask: Callable[[str], list[SourceRow]], wrong: type[Exception]
) -> list[SourceRow]:
    """Return the rows of the first query that the database takes: the tables of others differ."""
    told = ""
    for query in queries:
        try:
            return ask(query)
        except wrong as problem:
            told = redact_text(str(problem)) or ""
    raise CliProblem(
        f"The tables are not there, or may not be read ({told}). Is this the database, and is "
        "--schema or --table right?"
    )
