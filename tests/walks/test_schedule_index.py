"""The first document: a flat index of five columns, behind a cron of one's own.

Its reader has a table, a poller and an endpoint, and wants the claim: atomic, bounded, and at most
once. Each test is a section of that document, done on SQLite and on Postgres.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome, Refused
from duetick.domain.errors import SchemaOutdated
from duetick.domain.expression.errors import InvalidExpression
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.transports.http import HttpTransport, bearer

from tests.delivery.endpoint import endpoint, hang_up, status
from tests.integration.local_product import NINE
from tests.integration.theirs import PUT, Database, at

DAY = 86_400_000
DAILY = "0 9 * * *"
FAILED = Outcome(State.FAILED, Reason.FAILED, "It answered 503.")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return at(request, tmp_path)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    """Yield a store whose tables were made out of band."""
    with closing(database.migrated()) as store:
        yield store


def live(*, fresh: bool = False) -> tuple[str, ...]:
    """Return the secret that the endpoint knows."""
    del fresh
    return ("secret",)


def row(user: str, key: str = "digest", due: int = NINE, cron: str = DAILY) -> IndexRow:
    return IndexRow(user, key, cron, None, due)


def names(claimed: object) -> list[str]:
    return sorted(f"{one.user_id}/{one.key}" for one in claimed)  # type: ignore[attr-defined]


def test_i10_without_the_ddl_each_call_says_what_to_run(database: Database) -> None:
    """Schema setup: nothing makes tables on the fly; the error names the command."""
    with closing(database.opened()) as store:
        for call in (
            lambda: store.index.upsert(row("ann")),
            lambda: store.index.remove("ann", "digest"),
            lambda: store.index.claim_due(NINE),
        ):
            with pytest.raises(SchemaOutdated, match="duetick migrate"):
                call()


def test_i01_the_interface_is_upsert_claim_and_remove(store: Store) -> None:
    """Interface: a claim advances the row in its own transaction, a hundred unless asked."""
    store.index.upsert(row("ann"))
    store.index.upsert(row("ann"))
    store.index.upsert(row("bob", due=NINE + 1))
    assert names(store.index.claim_due(NINE)) == ["ann/digest"]
    assert list(store.index.claim_due(NINE)) == []
    advanced = store.index.get("ann", "digest")
    assert advanced is not None
    assert advanced.next_fire_at == NINE + DAY
    store.index.remove("bob", "digest")
    store.index.remove("bob", "digest")
    assert list(store.index.claim_due(NINE + 1)) == []

    for number in range(130):
        store.index.upsert(row("eve", f"k{number}"))
    assert [len(store.index.claim_due(NINE)) for _ in range(3)] == [100, 30, 0]
    assert len(store.index.claim_due(NINE + DAY, 7)) == 7


def test_i09_another_application_writes_the_five_columns(database: Database) -> None:
    """Schema setup: the table is the document's, and its writer goes on."""
    database.theirs()
    with closing(database.migrated()) as store:
        database.run(PUT.format(f"('bob', 'k', '@hourly', 'Europe/Berlin', {NINE})"))
        assert names(store.index.claim_due(NINE)) == ["ann/digest", "bob/k"]
        after = database.run("SELECT user_id, next_fire_at FROM schedule_index ORDER BY user_id")
        assert after == [("ann", NINE + DAY), ("bob", NINE + 3_600_000)]


def test_i05_workers_that_tick_at_once_never_see_the_same_row(
    database: Database, store: Store
) -> None:
    """Multi-worker contention: four workers, each on connections of its own."""
    for number in range(200):
        store.index.upsert(row("ann", f"k{number:03}"))
    together, found = threading.Barrier(4), Counter[str]()
    lock = threading.Lock()

    def work() -> None:
        with closing(database.opened()) as mine:
            mine.check_schema()
            together.wait(30)
            while claimed := mine.index.claim_due(NINE, 10):
                with lock:
                    found.update(one.key for one in claimed)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(found) == found.total() == 200


def test_i06_a_bad_cron_is_told_and_delays_no_other(database: Database, store: Store) -> None:
    """The bad-cron skip path: an unreadable row is no longer in the way."""
    with pytest.raises(InvalidExpression, match="minute"):
        store.schedules.put(Schedule("ann", "bad", "75 9 * * *", "mail", "send"), now=NINE - 1)
    database.run(PUT.format(f"('ann', 'bad', 'every morning', NULL, {NINE - 1})"))
    store.index.upsert(row("bob"))
    assert names(store.index.claim_due(NINE)) == ["bob/digest"]
    (told,) = store.ledger.find("ann", "bad")
    assert (told.state, told.reason) == (State.DEAD, Reason.POISONED)
    assert "every morning" in str(told.error)
    assert list(store.index.claim_due(NINE + DAY - 1)) == []


def test_i02_a_collection_of_schedules_keeps_its_rows(store: Store) -> None:
    """Auto-mirroring: create, update, disable, delete; nobody writes the index by hand."""
    digest = Schedule("ann", "digest", DAILY, "mail", "send")
    store.schedules.put(digest, now=NINE - 1)
    made = store.index.get("ann", "digest")
    assert made is not None
    assert (made.cron, made.next_fire_at) == (DAILY, NINE)

    store.schedules.put(Schedule("ann", "digest", "0 10 * * *", "mail", "send"), now=NINE - 1)
    changed = store.index.get("ann", "digest")
    assert changed is not None
    assert changed.next_fire_at == NINE + 3_600_000

    off = Schedule("ann", "digest", DAILY, "mail", "send", enabled=False)
    store.schedules.put(off, now=NINE - 1)
    assert store.index.get("ann", "digest") is None
    assert store.schedules.get("ann", "digest") is not None

    store.schedules.put(digest, now=NINE - 1)
    assert store.index.get("ann", "digest") is not None
    store.schedules.delete("ann", "digest", now=NINE - 1)
    assert store.index.get("ann", "digest") is None


def test_t03_one_post_for_each_due_row_and_none_again_after_a_failure(store: Store) -> None:
    """At-most-once contract: begin, POST, settle. A failure is told, and not repeated."""
    for user in ("ann", "bob"):
        store.index.upsert(row(user))
    posted: list[str] = []
    for due in store.index.claim_due(NINE):
        assert isinstance(store.ledger.begin(due, now=NINE), Begun)
        posted.append(due.user_id)
        store.ledger.settle(due, SUCCEEDED if due.user_id == "ann" else FAILED, now=NINE)
        assert isinstance(store.ledger.begin(due, now=NINE), Refused)
    assert sorted(posted) == ["ann", "bob"]
    for later in (NINE + 60_000, NINE + DAY - 1):
        assert list(store.index.claim_due(later)) == []
    ends = {user: store.ledger.find(user, "digest")[0] for user in ("ann", "bob")}
    assert (ends["ann"].reason, ends["bob"].reason) == (Reason.FIRED, Reason.FAILED)
    assert ends["bob"].error == "It answered 503."


def test_t02_the_tick_inlined_behind_a_timer_shows_the_status_of_every_attempt(
    store: Store,
) -> None:
    """Skipped fires are visible: `on_dispatch` sees the status, 0 where nobody answered."""
    seen: list[int] = []

    def note(_occurrence: Occurrence, answered: int) -> None:
        seen.append(answered)

    for day, behave in enumerate((status(202), status(400), hang_up)):
        store.index.upsert(row("ann", f"k{day}", cron="0 9 1 1 *"))
        with endpoint(behave) as there:
            transport = HttpTransport(there.url, bearer(live))
            with closing(transport):
                run_tick(store, transport, now=NINE, on_dispatch=note)
            (call, *_) = there.requests
            assert call.startswith(f"POST /v1/api/flows/-/schedules/ann~2Fk{day}/dispatch")
            assert "authorization: bearer secret" in call.casefold()
    assert sorted(set(seen)) == [0, 202, 400]
