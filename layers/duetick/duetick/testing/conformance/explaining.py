"""A-02: on every store, explain says the outcome of a time in the ledger, or what becomes of it."""

from dataclasses import replace

import pytest

from duetick.core.explain import Explanation, explain
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.errors import NotFound
from duetick.domain.pausing import pause
from duetick.domain.policies import Policies
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    row,
    schedule,
)
from duetick.testing.conformance.suite import FAILED, StoreSuite, drain, must, only, start


def at_minute(store: Store, minute: int, now: int) -> Explanation:
    """Explain the time that many minutes after noon."""
    return explain(store, "ada", "digest", NOON + minute * MINUTE, now)


class ExplainConformance(StoreSuite):
    """A-02: one time, explained from the book, the definitions and the ledger."""

    def test_a02_a_time_that_fired_is_explained_by_its_entry(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        held = start(store, only(drain(store, NOON + MINUTE)), NOON + MINUTE)
        store.ledger.settle(held, SUCCEEDED, now=NOON + MINUTE)
        found = at_minute(store, 1, NOON + 90_000)
        assert (found.verdict, must(found.occurrence).id) == ("fired", held.id)
        assert must(found.judged.definition).since == NOON

    def test_a02_a_failed_attempt_and_its_event_are_explained(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=AT_LEAST_ONCE), now=NOON)
        held = start(store, only(drain(store, NOON + MINUTE)), NOON + MINUTE)
        store.ledger.settle(held, FAILED, now=NOON + MINUTE)
        found = at_minute(store, 1, NOON + MINUTE + 1)
        assert (found.verdict, len(found.failures), len(found.events)) == ("will_retry", 1, 1)

    def test_a02_a_time_of_a_range_is_explained_by_the_range(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, NOON + HOUR)
        found = at_minute(store, 7, NOON + HOUR)
        assert (found.verdict, must(found.occurrence).count) == ("missed", 57)
        between = explain(store, "ada", "digest", NOON + 7 * MINUTE + 5, NOON + HOUR)
        assert (between.verdict, between.occurrence) == ("not_a_fire_time", None)
        assert between.judged.before == NOON + 7 * MINUTE

    def test_a02_a_time_to_come_is_foreseen_and_nothing_is_written(self, store: Store) -> None:
        put = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        assert at_minute(store, 5, NOON + 1).verdict == "will_fire"
        assert at_minute(store, 1, NOON + 90_000).verdict == "will_fire"
        assert at_minute(store, 1, NOON + HOUR).verdict == "missed"
        assert store.schedules.get("ada", "digest") == put
        assert store.ledger.find("ada", "digest") == []

    def test_a02_a_pause_is_foreseen_and_told_before_its_range_is_written(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        end = NOON + 10 * MINUTE
        store.schedules.put(pause(made, "", end, NOON + 5), now=NOON + 5)
        now = NOON + 3 * MINUTE
        assert [at_minute(store, n, now).verdict for n in (2, 9, 10)] == [
            *("paused", "paused", "will_fire"),
        ]
        assert at_minute(store, 2, end + HOUR).verdict == "paused"

    def test_a02_the_limit_of_runs_is_foreseen(self, store: Store) -> None:
        limited = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=3))
        store.schedules.put(limited, now=NOON)
        first = only(drain(store, NOON + MINUTE))
        verdicts = [at_minute(store, n, NOON + MINUTE).verdict for n in (1, 2, 3, 4)]
        assert verdicts == ["will_fire", "will_fire", "will_fire", "quota"]
        start(store, first, NOON + MINUTE)
        assert at_minute(store, 3, NOON + MINUTE + 1).verdict == "will_fire"
        assert at_minute(store, 4, NOON + MINUTE + 1).verdict == "quota"

    def test_a02_each_time_is_explained_by_the_definition_in_force_then(self, store: Store) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, NOON + 2 * MINUTE)
        changed = NOON + 2 * MINUTE + 5
        store.schedules.put(replace(made, cron="*/5 * * * *"), now=changed)
        now = changed + 5
        assert must(at_minute(store, 2, now).judged.definition).cron == EACH_MINUTE
        assert at_minute(store, 4, now).verdict == "not_a_fire_time"
        assert must(at_minute(store, 5, now).judged.definition).since == changed

    def test_a02_a_deleted_schedule_is_explained_and_one_that_never_was_is_not(
        self, store: Store
    ) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, NOON + MINUTE)
        store.schedules.delete("ada", "digest", now=NOON + MINUTE + 5)
        found = at_minute(store, 9, NOON + HOUR)
        assert (found.verdict, found.judged.before) == ("no_schedule", NOON + MINUTE)
        assert at_minute(store, 1, NOON + MINUTE + 6).verdict == "schedule_deleted"
        with pytest.raises(NotFound):
            explain(store, "ada", "other", NOON, NOON)

    def test_a02_a_row_without_a_record_is_explained_by_the_row(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        assert at_minute(store, 5, NOON - 1).verdict == "will_fire"
        assert at_minute(store, -5, NOON - 1).verdict == "unknown"

    def test_a02_a_time_that_the_row_was_moved_past_is_unaccounted(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, next_fire_at=NOON + 8 * MINUTE))
        now = NOON + 5 * MINUTE
        assert at_minute(store, 3, now).verdict == "unaccounted"
        assert at_minute(store, 6, now).verdict == "unindexed"
        assert at_minute(store, 8, now).verdict == "will_fire"
