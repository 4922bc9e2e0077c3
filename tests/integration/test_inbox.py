"""K-03: other applications on the same database enqueue jobs with one INSERT of their own."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from duetick.core.inbox import Inbox
from duetick.domain.jobs import LONGEST_SHOWN, InboxRow
from duetick.domain.states import Reason, State
from duetick.ports import Effects
from duetick.stores import open_store

from tests.integration.local_product import NINE, Clock, Product, product
from tests.lab.postgres import connect

TOP = Path(__file__).parents[2]
PAGE = (TOP / "functions" / "README.md").read_text(encoding="utf-8")
(INSERT,) = re.findall(r"INSERT INTO inbox .*?;", PAGE, re.DOTALL)
(GRANT,) = re.findall(r"CREATE ROLE .*?GRANT INSERT ON inbox[^;]*;", PAGE, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shared:
    """A product, and plain connections of another application to its database."""

    running: Product
    open: Callable[[], AbstractContextManager[Callable[[str], Any]]]

    def run(self, *statements: str) -> list[list[object]]:
        """Run statements on a connection that commits each; return the rows of the last."""
        rows: list[list[object]] = []
        with self.open() as run:
            for statement in statements:
                rows = [list(row) for row in run(statement) or ()]
        return rows


@contextmanager
def plain_sqlite(path: Path) -> Iterator[Callable[[str], Any]]:
    """Yield a connection that commits each statement."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        yield file.execute


@contextmanager
def plain_postgres(address: str) -> Iterator[Callable[[str], Any]]:
    """See `plain_sqlite`."""
    with connect(address) as other:
        yield other.run


@pytest.fixture(params=["sqlite", "postgres"])
def shared(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shared]:
    """The product, on a database that it shares."""
    path = tmp_path / "shared.db"
    address, other = f"sqlite:///{path}", partial(plain_sqlite, path)
    if request.param == "postgres":
        address = request.getfixturevalue("migrated_postgres_url")
        other = partial(plain_postgres, address)
    with product(address, Clock(NINE), monkeypatch) as made:
        yield Shared(made, other)


def insert(
    action: str = "remind",
    *,
    user: str = "you",
    given: str = '{"text": "hi"}',
    due_at: int | None = None,
    key: str = "order-7",
) -> str:
    """Return the statement of the page, with other values."""
    at = "NULL" if due_at is None else str(due_at)
    head = INSERT.partition("VALUES")[0]
    return f"{head} VALUES ('{user}', 'reminders', '{action}', '{given}', {at}, '{key}')"


def test_k03_the_documented_statement_makes_a_job_with_the_next_tick(
    shared: Shared,
) -> None:
    running = shared.running
    shared.run(INSERT)
    values = re.findall(r"'([^']*)'", INSERT.partition("VALUES")[2])
    running.tick()
    (made,) = running.store.jobs.list(values[0]).jobs
    assert (made.record.flow, made.record.action) == (values[1], values[2])
    assert made.record.input == json.loads(values[3])
    assert made.occurrence.state is State.SUCCEEDED
    assert shared.run("SELECT count(*) FROM inbox") == [[0]]
    running.tick()
    assert len(running.store.jobs.list(values[0]).jobs) == 1


def test_k03_a_row_has_a_time_and_a_key(shared: Shared) -> None:
    running = shared.running
    shared.run(insert(due_at=NINE + 90_000))
    shared.run(insert(given='{"text": "again"}'))
    running.tick()
    (made,) = running.store.jobs.list("you").jobs
    assert (made.occurrence.due_at, made.occurrence.state) == (NINE + 90_000, State.SCHEDULED)
    assert running.client().enqueue(
        {"flow": "reminders", "action": "remind", "input": {"text": "x"}, "key": "order-7"}
    ).body["id"] == (made.id)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (insert("none"), "has no action"),
        (insert("clean_up", given="null").replace("'reminders'", "'digests'"), "not for users"),
        (insert(given="{"), "is not JSON"),
        (insert(given='{"words": 1}'), "words"),
        (insert(due_at=NINE + 400 * 86_400_000), "more than 366 days"),
        (insert(key=""), "key"),
    ],
)
def test_k03_a_row_that_is_wrong_is_a_dead_job_with_the_reason(
    shared: Shared, wrong: str, why: str
) -> None:
    running = shared.running
    shared.run(wrong)
    shared.run(insert(key="right"))
    running.tick()
    jobs = running.store.jobs.list("you").jobs
    (dead,) = (one for one in jobs if one.occurrence.state is State.DEAD)
    assert dead.occurrence.reason is Reason.REJECTED
    assert why in (dead.occurrence.error or "")
    assert why in str(running.client().job(dead.id)["error"])
    assert len(jobs) == 2, "a wrong row held up a right one"


def test_k03_a_wrong_row_keeps_a_bounded_part_of_its_names(shared: Shared) -> None:
    shared.run(
        insert("a" * 5_000, key="k" * 5_000).replace("'reminders'", "'x\n" + "f" * 5_000 + "'")
    )
    shared.running.tick()
    (dead,) = shared.running.store.jobs.list("you").jobs
    names = (dead.record.flow, dead.record.action, dead.occurrence.idempotency_key or "")
    assert [len(name) for name in names] == [LONGEST_SHOWN] * 3
    assert all(name.isprintable() for name in names)
    assert shared.running.client().job(dead.id)["state"] == "dead"


def test_k03_a_row_that_fails_stays_and_holds_up_no_other(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running, take = shared.running, Inbox.take

    def fail_for_one(self: Inbox, row: InboxRow, effects: Effects) -> None:
        take(self, row, effects)
        if row.key == "stuck":
            raise RuntimeError("this row cannot be taken in")

    shared.run(insert(key="stuck"))
    shared.run(insert(key="right"))
    with monkeypatch.context() as patch:
        patch.setattr(Inbox, "take", fail_for_one)
        running.tick()
    (made,) = running.store.jobs.list("you").jobs
    assert made.occurrence.idempotency_key == "right"
    assert shared.run("SELECT key FROM inbox") == [["stuck"]]
    assert "a row of the inbox stays" in caplog.text
    running.tick()
    assert len(running.store.jobs.list("you").jobs) == 2


@pytest.mark.parametrize(
    "column",
    ["user_id", "flow", "action", "input", "due_at", "key"],
    ids=lambda name: f"bytes in {name}",
)
def test_k03_sqlite_refuses_other_types_to_whoever_writes_them(tmp_path: Path, column: str) -> None:
    with closing(open_store(f"sqlite:///{tmp_path / 'typed.db'}")) as store:
        store.migrate()
    with plain_sqlite(tmp_path / "typed.db") as run:
        run("CREATE TEMP TABLE given (id, user_id, flow, action, input, due_at, key)")
        run("INSERT INTO given VALUES (1, 'you', 'reminders', 'remind', '1', NULL, 'k')")
        run("UPDATE given SET column = x'ff'".replace("column", column))
        with pytest.raises(sqlite3.IntegrityError, match="cannot store"):
            run("INSERT INTO inbox SELECT * FROM given")


def test_k03_text_that_is_none_holds_up_no_other(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'torn.db'}"
    with pytest.MonkeyPatch.context() as patch, product(address, Clock(NINE), patch) as running:
        with plain_sqlite(tmp_path / "torn.db") as run:
            run(insert(key="torn").replace("'torn'", "CAST(x'ff' AS TEXT)"))
            run(insert(key="right"))
        running.tick()
        (made,) = running.store.jobs.list("you").jobs
        assert made.occurrence.idempotency_key == "right"


def test_k03_a_row_that_is_not_committed_makes_nothing(shared: Shared) -> None:
    shared.run("BEGIN", insert(), "ROLLBACK")
    shared.running.tick()
    assert shared.running.store.jobs.list("you").jobs == ()


def test_k03_erase_takes_what_waits_in_the_inbox(shared: Shared) -> None:
    running = shared.running
    shared.run(insert())
    running.store.erase("you")
    running.tick()
    assert running.store.jobs.list("you").jobs == ()


def test_k03_a_row_for_nobody_is_dropped_and_logged(shared: Shared) -> None:
    running = shared.running
    shared.run(insert(user="a/b"))
    shared.run(insert())
    running.tick()
    assert len(running.store.jobs.list("you").jobs) == 1
    assert shared.run("SELECT count(*) FROM inbox") == [[0]]


def test_k03_a_role_may_insert_and_nothing_else(migrated_postgres_url: str) -> None:
    with connect(migrated_postgres_url) as owner:
        schema = owner.run("SELECT current_schema()")[0][0]
        owner.run("DROP ROLE IF EXISTS orders")
        owner.run(GRANT.replace("public", f'"{schema}"'))
        try:
            owner.run("SET ROLE orders")
            owner.run(insert())
            for forbidden in (
                "SELECT * FROM inbox",
                "DELETE FROM inbox",
                "SELECT * FROM schedules",
            ):
                with pytest.raises(Exception, match="permission denied"):
                    owner.run(forbidden)
        finally:
            owner.run("RESET ROLE")
            owner.run("DROP OWNED BY orders; DROP ROLE orders")
