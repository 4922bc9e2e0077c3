"""An erasure on SQLite clears its files too, not its tables alone."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.domain.attempts import Outcome
from duetick.domain.errors import StoreUnavailable
from duetick.domain.states import Reason, State
from duetick.stores import open_store
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    BAD,
    EACH_MINUTE,
    MINUTE,
    NOON,
    SOON,
    row,
    schedule,
)
from duetick.testing.conformance.suite import begun, drain

CANARY = "canary"
ROUNDS = 12


def careless(path: Path) -> sqlite3.Connection:
    """Return a caller's own connection, on a SQLite that forgets nothing by itself."""
    connection = sqlite3.connect(path, check_same_thread=False, timeout=0.05)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("PRAGMA journal_mode = WAL")
    return connection


@pytest.fixture(params=["address", "factory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Yield a store on a file. It stays open."""
    path = tmp_path / "kept.db"
    opens: dict[str, str | Callable[[], object]] = {
        "address": f"sqlite:///{path}",
        "factory": lambda: careless(path),
    }
    with closing(open_store(opens[request.param])) as made:
        made.migrate()
        yield made


def live(store: Store) -> None:
    """Let two users live beside each other: the one who is erased, and one who stays."""
    for number in range(ROUNDS):
        for user in (CANARY, "bob"):
            wanted = schedule(f"{number}", user=user, cron=EACH_MINUTE, policies=AT_LEAST_ONCE)
            told = f"{user} says {'so ' * 40 * number}"
            store.schedules.put(replace(wanted, input=told, labels={"of": user}), now=NOON)
            store.index.upsert(row(f"bad-{number}", user=user, cron=f"{BAD} of {user}"))
    for occurrence in drain(store, SOON + MINUTE):
        held = begun(store.ledger.begin(occurrence, now=SOON + MINUTE)).occurrence
        lost = Outcome(State.FAILED, Reason.FAILED, f"{held.user_id} was there")
        store.ledger.settle(held, lost, now=SOON + MINUTE)
    for number in range(0, ROUNDS, 2):
        for user in (CANARY, "bob"):
            store.schedules.delete(user, f"{number}", now=NOON + 2 * MINUTE)


def live_at_random(store: Store, seed: int) -> None:
    """Pages are filled, split and merged; the lives that leave traces are few."""
    chance = random.Random(seed)
    for number in range(150):
        user, key = chance.choice([CANARY, "bob", "cem"]), str(chance.randrange(60))
        size = chance.choice([1, 5, 60, 400, 2_000])
        if chance.random() < 0.2:
            store.schedules.delete(user, key, now=NOON + number)
        else:
            wanted = schedule(key, user=user, cron=EACH_MINUTE)
            store.schedules.put(replace(wanted, input=f"{user} " * size), now=NOON + number)
        if number % 40 == 0:
            store.index.claim_due(NOON + number * MINUTE, limit=50)


def files(folder: Path) -> dict[str, bytes]:
    """Return all files in the folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_nothing_of_an_erased_user_is_left_in_a_file(store: Store, tmp_path: Path) -> None:
    live(store)
    assert any(CANARY.encode() in content for content in files(tmp_path).values())
    store.erase(CANARY)
    left = {
        name: content.count(CANARY.encode())
        for name, content in files(tmp_path).items()
        if CANARY.encode() in content
    }
    assert left == {}
    assert len(store.schedules.list("bob").schedules) == ROUNDS // 2


@pytest.mark.parametrize("seed", range(3, 6))
def test_nothing_is_left_of_a_user_whose_pages_were_split_and_merged(
    tmp_path: Path, seed: int
) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/kept.db")) as store:
        store.migrate()
        live_at_random(store, seed)
        store.erase(CANARY)
        assert not any(CANARY.encode() in content for content in files(tmp_path).values())


def test_an_erasure_that_a_reader_holds_up_is_told_and_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with closing(open_store(lambda: careless(path))) as store, closing(careless(path)) as reader:
        store.migrate()
        live(store)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM schedules").fetchall()
        with pytest.raises(StoreUnavailable, match="Erase again"):
            store.erase(CANARY)
        reader.rollback()
        store.erase(CANARY)
        assert not any(CANARY.encode() in content for content in files(tmp_path).values())
