"""I-13: no row, whatever its types and its time, makes a claim endless or holds up another."""

import sqlite3
from contextlib import closing, suppress
from itertools import cycle, product
from pathlib import Path

import pytest
from duetick import Flow
from duetick.core.store import Store
from duetick.domain.states import Reason
from duetick.testing import FakeClock, Stage

from tests.integration.local_product import NINE
from tests.integration.theirs import DUE, LOOSE, PUT, THEIRS, Database, at


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return at(request, tmp_path)


@pytest.mark.parametrize(
    "row",
    [
        ("5", "7", NINE),
        ("x'2a'", "NULL", NINE),
        ("'* * * * *'", "x'55'", NINE),
        ("'* * * * *'", "NULL", f"{NINE}.5 - 1000"),
        ("'* * * * *'", "NULL", "'12'"),
        ("'* * * * *'", "NULL", "'soon'"),
        ("'* * * * *'", "NULL", "x'00'"),
        ("'* * * * *'", "NULL", "-9223372036854775807 - 1"),
        ("'rate(5 minutes)'", "NULL", "-9223372036854775807 - 1"),
        ("'* * * * *'", "''", NINE),
    ],
    ids=str,
)
@pytest.mark.parametrize("before", [True, False])
def test_i13_no_type_that_sqlite_lets_in_holds_up_a_claim(
    tmp_path: Path, row: tuple[str, str, object], before: bool
) -> None:
    """Before the takeover it is read or poisoned; after it, SQLite refuses who writes it."""
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.run(LOOSE)
    if not before:
        theirs.migrated().close()
    with suppress(sqlite3.IntegrityError):
        theirs.run(PUT.format(f"('bob', 'odd', {row[0]}, {row[1]}, {row[2]})"))
    theirs.run(DUE)
    with closing(theirs.migrated()) as store:
        assert ("ann", "digest") in claimed_in_turn(store)


def test_i13_a_name_that_is_no_text_is_refused_where_it_is_written(tmp_path: Path) -> None:
    ours = Database("sqlite", f"sqlite:///{tmp_path}/ours.db")
    ours.migrated().close()
    for row in ("(x'616e6e', 'k', '@daily', NULL, 0)", "('ann', x'6b', '@daily', NULL, 0)"):
        with pytest.raises(sqlite3.IntegrityError, match="BLOB"):
            ours.run(PUT.format(row))


ODD_CRONS = ["* * * * *", "rate(5 minutes)", "0 9 * * *", "@daily", "", "5"]
ODD_TIMES = [-(2**63), -(2**62), -(10**14), 0, 12, NINE // 1_000]
LONG = "k" * 200
ODD_ZONES = ["NULL", "''", "'Europe/Berlin'"]
ODD = [*zip(product(ODD_CRONS, ODD_TIMES), cycle([*ODD_ZONES, "NULL"]))]


@pytest.mark.slow
def test_i13_no_time_however_odd_holds_up_a_claim(database: Database) -> None:
    database.run(THEIRS[database.kind])
    for n, ((cron, due), zone) in enumerate(ODD):
        database.run(PUT.format(f"('bob', 'odd {n}', '{cron}', {zone}, ({due + 1} - 1))"))
    database.run(DUE)
    with closing(database.migrated()) as store:
        names = claimed_in_turn(store)
        broken = {one.key for one in store.index.unreadable(1_000)}
    assert ("ann", "digest") in names
    assert broken | {key for _, key in names} == {"digest", *(f"odd {n}" for n in range(len(ODD)))}


def test_m05_rows_of_others_whose_names_no_path_carries_end_at_once(database: Database) -> None:
    """Some rows were there before the takeover, and SQL puts others later."""
    names = [("a/b", "c"), ("ann", ".."), ("ann", "a//b"), ("ann", " "), ("", "one"), ("a", LONG)]
    database.theirs()
    flow, ran = Flow("mail"), list[str]()
    flow.action("send")(lambda _given, ctx: ran.append(ctx.schedule_id))
    for n, (user_id, key) in enumerate(names):
        if n == len(names) // 2:
            database.migrated().close()
        database.run(PUT.format(f"('{user_id}', '{key}', '0 9 * * *', NULL, {NINE})"))
    with (
        closing(database.opened()) as store,
        Stage(flow, clock=FakeClock(NINE), store=store, row_flow="mail/send") as stage,
    ):
        assert stage.tick().rejected == len(names)
        ended = [store.ledger.find(user_id, key)[0].reason for user_id, key in names]
    assert (set(ended), ran) == ({Reason.REJECTED}, ["ann/digest"])


def claimed_in_turn(store: Store) -> list[tuple[str, str]]:
    """Claim a row at a time until nothing is due. Return the names."""
    names: list[tuple[str, str]] = []
    for _ in range(len(ODD) * 2):
        if not (claimed := store.index.claim_due(NINE, limit=1)):
            return names
        names += [(one.user_id, one.key) for one in claimed]
    raise AssertionError(f"The claim does not end: {names}")
