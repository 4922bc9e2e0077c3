"""The claim without locks: others act between its read and its write, and it gives way to them."""

import threading
from collections.abc import Sequence

from duetick.core.store import Store
from duetick.domain.occurrence import IndexRow
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import State
from duetick.stores.postgres.shelf import PostgresShelf
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, NOON
from pg8000.native import Connection

TAKER = "SELECT user_id FROM schedule_index WHERE ctid = :place::tid"
TO_HOURLY = "UPDATE schedule_index SET cron = '0 * * * *' WHERE user_id = 'b'"


def due(store: Store, users: str, cron: str = "0 12 * * *") -> None:
    """Put a row for each user, due one millisecond after the one before."""
    for place, user in enumerate(users):
        store.index.upsert(IndexRow(user, "digest", cron, None, NOON + place))


def users(claimed: Sequence[Occurrence]) -> str:
    return "".join(one.user_id for one in claimed)


def next_of(store: Store, user: str) -> int:
    row = store.index.get(user, "digest")
    assert row is not None
    return row.next_fire_at


def is_fast(store: Store) -> bool:
    """Return True if no claim of this tick has given way."""
    assert isinstance(store.shelf, PostgresShelf)
    return not store.shelf._fast_claim._tick.gives_way


def test_i02_a_tick_that_reads_ahead_claims_chunk_by_chunk(store: Store) -> None:
    due(store, "abcdefghij")
    found = [users(store.index.claim_due(NOON + 10, 2)) for _ in range(6)]
    assert found == ["ab", "cd", "ef", "gh", "ij", ""]
    assert is_fast(store)


def test_i05_a_row_that_changes_after_it_was_read_is_claimed_as_it_is_then(
    store: Store, other: Connection
) -> None:
    due(store, "abc")
    assert users(store.index.claim_due(NOON + 10, 1)) == "a"
    assert users(store.index.claim_due(NOON + 10, 1)) == "b"  # c is read, and decided
    other.run(TO_HOURLY.replace("'b'", "'c'"))
    assert users(store.index.claim_due(NOON + 10, 1)) == "c"
    assert next_of(store, "c") == NOON + HOUR


def test_i05_a_change_that_is_committed_while_the_claim_waits_for_it_counts(
    store: Store, other: Connection
) -> None:
    due(store, "ab")
    other.run("BEGIN")
    other.run(TO_HOURLY)
    commit = threading.Timer(0.05, other.run, ["COMMIT"])
    commit.start()
    claimed = store.index.claim_due(NOON + 10)
    commit.join()
    assert users([*claimed, *store.index.claim_due(NOON + 10)]) == "ab"
    assert next_of(store, "b") == NOON + HOUR


def test_i05_a_row_that_takes_the_place_of_a_claimed_one_is_left_alone(
    store: Store, other: Connection
) -> None:
    due(store, "abc")
    store.index.claim_due(NOON + 10, 1)
    store.index.claim_due(NOON + 10, 1)  # c is read, and decided
    [[place]] = other.run("SELECT ctid::text FROM schedule_index WHERE user_id = 'c'")
    other.run("DELETE FROM schedule_index WHERE user_id = 'c'")
    other.run("VACUUM schedule_index")
    for user in "defgh":
        store.index.upsert(IndexRow(user, "digest", "0 12 * * *", None, NOON + DAY))
    [[taker]] = other.run(TAKER, place=place)
    assert users(store.index.claim_due(NOON + 10, 1)) == ""
    assert next_of(store, taker) == NOON + DAY


def test_i05_a_claim_skips_a_row_that_somebody_keeps_locked(
    store: Store, other: Connection
) -> None:
    due(store, "abc")
    other.run("BEGIN")
    other.run("SELECT 1 FROM schedule_index WHERE user_id = 'b' FOR UPDATE")
    assert users(store.index.claim_due(NOON + 10)) == "ac"
    assert not is_fast(store)
    other.run("ROLLBACK")
    assert users(store.index.claim_due(NOON + 10)) == "b"


def test_j13_a_time_that_is_recorded_already_is_not_claimed_again(
    store: Store, other: Connection
) -> None:
    due(store, "ab")
    assert users(store.index.claim_due(NOON)) == "a"
    other.run(
        "UPDATE schedule_index SET next_fire_at = :at, mark = NULL WHERE user_id = 'a'", at=NOON
    )
    assert users(store.index.claim_due(NOON + 10)) == "b"
    assert not is_fast(store)
    assert next_of(store, "a") == NOON + DAY


def test_i02_rows_that_end_or_cannot_be_read_are_claimed_with_the_others(store: Store) -> None:
    due(store, "ab")
    store.schedules.put(Schedule("c", "once", "at(2027-03-01T12:00:00)", "f", "a"), now=NOON - DAY)
    store.index.upsert(IndexRow("d", "digest", "no cron", None, NOON))
    poisoned: list[Occurrence] = []
    claimed = store.index.claim_due(NOON + 10, on_poisoned=poisoned.append)
    assert ({*users(claimed)}, users(poisoned)) == ({*"abc"}, "d")
    assert store.index.get("c", "once") is None
    assert is_fast(store)


def test_t06_several_times_of_a_row_are_claimed_at_once(store: Store) -> None:
    due(store, "ab", "* * * * *")
    due(store, "c", "*/2 * * * *")
    claimed = store.index.claim_due(NOON + 10, ahead=3 * MINUTE)
    times = {user: [one.nominal_at for one in claimed if one.user_id == user] for user in "abc"}
    assert times["a"] == [NOON, *(NOON + n * MINUTE for n in (1, 2, 3))]
    assert times["c"] == [NOON, NOON + 2 * MINUTE]
    assert len({one.id for one in claimed}) == len(claimed)
    kept = {one.id: one for one in store.ledger.find("a", limit=9)}
    assert [kept[one.id].nominal_at for one in claimed if one.user_id == "a"] == times["a"]
    assert {one.state for one in kept.values()} == {State.QUEUED}


def test_i05_a_connection_that_forgets_its_statements_is_asked_without(
    store: Store, postgres_url: str
) -> None:
    """A pooler does that: it gives each transaction another connection."""
    due(store, "ab")
    assert users(store.index.claim_due(NOON, 1)) == "a"
    assert isinstance(store.shelf, PostgresShelf)
    with store.shelf._database.transaction() as session:
        session.script("DEALLOCATE ALL")
    assert users(store.index.claim_due(NOON + 10, 1)) == "b"
