"""A store that was restored from a backup claims nothing until it is recovered."""

from dataclasses import dataclass, replace
from functools import partial

import pytest

from duetick.core.backfills import BackfillRequest, Backfills
from duetick.core.recovery import Recovered, recover
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.core.verify import verify
from duetick.core.witness import check_witness, keep_witness, read_noted
from duetick.domain.errors import StoreRestored, WitnessUnavailable
from duetick.domain.policies import Backoff, Delivery, Policies, Retry
from duetick.domain.recovering import UNKNOWN, Recovery
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Deliverable, Delivered
from duetick.testing.conformance.samples import (
    ALLOW,
    AT_LEAST_ONCE,
    BAD,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SKIP_MISSED,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import FAILED, StoreSuite, drain, must, only, recorded, start

BACKUP = NOON + HOUR
"""When the backup was made: the store's note is an hour old by then, and so is the witness."""

RESTORE = NOON + 6 * HOUR
AFTER = RESTORE + 90 * SECOND
HALF_HOURS = "*/30 * * * *"
TEN_HOURS = Policies(
    delivery=Delivery.AT_LEAST_ONCE, retry=Retry(Backoff.FIXED, first=36_000, longest=36_000)
)


@dataclass
class KeptWitness:
    """A witness in memory."""

    at: int | None = None
    reads: int = 0
    away: bool = False

    def read(self) -> int | None:
        """Return the instant."""
        self.reads += 1
        if self.away:
            raise WitnessUnavailable("It is away.")
        return self.at

    def write(self, at: int) -> None:
        """Keep the instant."""
        self.at = at


class TakesAll:
    """A transport that takes everything."""

    def __init__(self) -> None:
        self.delivered: list[Deliverable] = []

    def deliver(self, occurrence: Deliverable, *, timeout: float) -> Delivered:
        """Take the occurrence."""
        del timeout
        self.delivered.append(occurrence)
        return Delivered(202, "{}")

    def close(self) -> None:
        """Nothing is open."""


def restore(store: Store, until: int = BACKUP) -> KeptWitness:
    """Run ticks up to a backup, and restore the store later. Return its witness."""
    witness = KeptWitness()
    keep_witness(store, witness, NOON)
    drain(store, until)
    witness.write(RESTORE - HOUR)
    return witness


def under_way(store: Store, count: int) -> None:
    """Begin runs that would be tried again after the end of their leases."""
    again = replace(ALLOW, delivery=Delivery.AT_LEAST_ONCE)
    store.schedules.put(schedule(policies=again), now=NOON)
    for number in range(count):
        start(store, replace(by_hand(run=f"run:{number}", at=BACKUP), policies=again), BACKUP)


def tick(store: Store, witness: KeptWitness, now: int) -> int:
    """Return the number of occurrences that one tick claims."""
    return run_tick(store, TakesAll(), now=now, budget=30, witness=witness).claimed


def refuse(store: Store, witness: KeptWitness, now: int = RESTORE) -> None:
    """Let a tick find the restore."""
    with pytest.raises(StoreRestored, match="duetick recover"):
        tick(store, witness, now)


def recover_at(
    store: Store, witness: KeptWitness, how: Recovery, *, now: int = AFTER, dry_run: bool = False
) -> Recovered:
    """Return the result of a recovery."""
    return recover(store, witness, how, now=now, dry_run=dry_run)


def ranges(store: Store, key: str = "digest") -> list[tuple[int, int, int, str | None]]:
    """Return the ranges of a schedule in minutes after noon, the oldest first, with their error."""
    return [
        ((one.nominal_at - NOON) // MINUTE, (must(one.range_end) - NOON) // MINUTE, *_rest)
        for one in reversed(store.ledger.find("ada", key, limit=1_000))
        if one.reason is Reason.MISSED
        for _rest in [(one.count, one.error)]
    ]


def count_missed(store: Store) -> int:
    """Count the missed times of all schedules."""
    return sum(one[2] for key in ("digest", "hourly") for one in ranges(store, key))


class RestoreConformance(StoreSuite):
    """A ledger that is older than its witness refuses to claim; `recover` decides which times
    fire.
    """

    def test_a_store_in_step_with_its_witness_claims(self, store: Store) -> None:
        witness = KeptWitness()
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        keep_witness(store, witness, NOON)
        assert tick(store, witness, NOON + MINUTE) == 1

    def test_a_store_and_a_witness_that_are_both_old_were_down(self, store: Store) -> None:
        witness = KeptWitness()
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        keep_witness(store, witness, NOON)
        assert tick(store, witness, NOON + 7 * DAY) > 0
        keep_witness(store, witness, NOON + 7 * DAY)
        assert witness.at == read_noted(store) == NOON + 7 * DAY

    def test_a_store_older_than_its_witness_claims_nothing(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        witness = restore(store)
        before = must(store.index.get("ada", "digest"))
        for late in range(3):
            refuse(store, witness, RESTORE + late * MINUTE)
        assert store.index.get("ada", "digest") == before

    def test_the_hourly_count_does_not_hide_a_restore(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        witness = restore(store)
        with pytest.raises(StoreRestored):
            keep_witness(store, witness, RESTORE)
        assert (read_noted(store), witness.at) == (NOON, RESTORE - HOUR)
        refuse(store, witness)

    def test_a_backup_of_before_the_first_witness_is_told_too(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        refuse(store, KeptWitness(RESTORE - HOUR))

    def test_a_new_store_beside_an_old_witness_claims(self, store: Store) -> None:
        witness = KeptWitness(NOON - HOUR)
        check_witness(store, witness, NOON)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        assert tick(store, witness, NOON + MINUTE) == 1

    @pytest.mark.parametrize("how", ["skip", "latest", "fire"])
    def test_k01_a_job_whose_turn_came_is_written_off_and_a_later_one_stays(
        self, store: Store, how: Recovery
    ) -> None:
        witness = restore(store)
        mine = [schedule(key="job") for _ in range(3)]
        waits, held, later = (
            store.jobs.enqueue(one, due_at=due, now=BACKUP).job
            for one, due in zip(mine, (BACKUP, BACKUP + HOUR, AFTER + DAY), strict=True)
        )
        store.pauses.pause("user:ada", now=BACKUP + MINUTE)
        refuse(store, witness)
        written_off = 0 if how == "fire" else 2
        assert recover_at(store, witness, how).lost == written_off
        now = [must(store.jobs.get("ada", one.id)) for one in (waits, held, later)]
        assert [one.is_pending for one in now] == [how == "fire", how == "fire", True]
        reasons = [one.occurrence.reason for one in now]
        assert reasons == [Reason.LOST] * written_off + [None] * (3 - written_off)

    @pytest.mark.parametrize("how", ["latest", "fire"])
    @pytest.mark.parametrize("until", [None, RESTORE - HOUR])
    def test_o02_it_tells_of_no_fire_that_the_pause_of_a_group_leaves_out(
        self, store: Store, how: Recovery, until: int | None
    ) -> None:
        store.schedules.put(schedule(cron=HALF_HOURS), now=NOON)
        witness = restore(store)
        before = count_missed(store)
        store.pauses.pause("user:ada", until=until, now=BACKUP + MINUTE)
        refuse(store, witness)
        told = recover_at(store, witness, how, dry_run=True)
        done = recover_at(store, witness, how)
        assert (done.fires, done.recorded) == (told.fires, told.recorded)
        assert tick(store, witness, AFTER) == told.fires
        assert count_missed(store) - before == told.recorded

    def test_a_tick_reads_the_witness_at_the_end_of_an_hour_alone(self, store: Store) -> None:
        witness = KeptWitness()
        keep_witness(store, witness, NOON)
        before = witness.reads
        for minute in range(60):
            check_witness(store, witness, NOON + minute * MINUTE)
        assert 0 < witness.reads - before < 10

    def test_a_witness_of_less_than_an_hour_stays(self, store: Store) -> None:
        witness = KeptWitness()
        keep_witness(store, witness, NOON)
        keep_witness(store, witness, NOON + 50 * MINUTE)
        assert witness.at == NOON
        keep_witness(store, witness, NOON + HOUR)
        assert witness.at == read_noted(store) == NOON + HOUR

    def test_a_witness_that_is_away_stops_no_tick(self, store: Store) -> None:
        witness = KeptWitness(away=True)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        assert tick(store, witness, NOON + MINUTE) == 1
        with pytest.raises(WitnessUnavailable):
            keep_witness(store, witness, NOON + MINUTE)

    def test_skip_records_what_may_have_fired_and_ticks_go_on(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        done = recover_at(store, witness, "skip")
        assert (done.schedules, done.recorded, done.fires, done.complete) == (1, 300, 1, True)
        assert [one for one in ranges(store) if one[3]] == [(61, 360, 300, UNKNOWN)]
        assert tick(store, witness, AFTER) == 1
        assert verify(store, 0, AFTER, now=AFTER).found == {}

    def test_latest_lets_the_newest_fire(self, store: Store) -> None:
        store.schedules.put(schedule(cron="0 * * * *"), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        done = recover_at(store, witness, "latest")
        assert (done.recorded, done.fires) == (4, 1)
        assert [one.nominal_at for one in drain(store, AFTER)] == [RESTORE]
        assert verify(store, 0, AFTER, now=AFTER).found == {}

    def test_latest_is_for_the_misfire_policy_to_refuse(self, store: Store) -> None:
        store.schedules.put(schedule(cron="30 * * * *", policies=SKIP_MISSED), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        done = recover_at(store, witness, "latest")
        assert (done.recorded, done.fires) == (5, 0)
        assert drain(store, AFTER) == []

    def test_fire_leaves_every_time_to_the_misfire_policy(self, store: Store) -> None:
        store.schedules.put(schedule(cron="0 * * * *"), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        done = recover_at(store, witness, "fire")
        assert (done.recorded, done.fires) == (4, 1)
        assert [one.nominal_at for one in drain(store, AFTER)] == [RESTORE]
        assert [one[3] for one in ranges(store)] == [None]

    @pytest.mark.parametrize("how", ["skip", "latest", "fire"])
    def test_a_dry_run_foresees_it_and_changes_nothing(self, store: Store, how: Recovery) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        store.schedules.put(schedule("hourly", cron="0 * * * *"), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        missed_before = count_missed(store)
        foreseen = recover_at(store, witness, how, dry_run=True)
        refuse(store, witness)
        done = recover_at(store, witness, how)
        assert (foreseen.fires, foreseen.recorded) == (done.fires, done.recorded)
        before = 0 if how == "fire" else done.recorded
        assert count_missed(store) - missed_before == before
        assert len(drain(store, AFTER)) == done.fires
        assert count_missed(store) - missed_before == done.recorded

    def test_a_recovery_that_stopped_goes_on(self, store: Store) -> None:
        for number in range(5):
            store.schedules.put(schedule(f"k{number}", cron="0 * * * *"), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        turns = iter([True] * 5)
        first = recover(
            store, witness, now=AFTER, dry_run=False, may_go_on=lambda: next(turns, False)
        )
        assert (first.complete, first.recorded > 0) == (False, True)
        refuse(store, witness, AFTER)
        again = recover_at(store, witness, "skip")
        assert (first.recorded + again.recorded, again.complete) == (25, True)
        assert recover_at(store, witness, "skip").restored is False
        assert verify(store, 0, AFTER, now=AFTER).found == {}

    def test_a_second_restore_is_told_again(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        recover_at(store, witness, "skip")
        keep_witness(store, witness, AFTER)
        assert witness.at == AFTER
        witness.write(AFTER + HOUR)
        refuse(store, witness, AFTER + 2 * HOUR)

    def test_what_was_under_way_in_the_backup_is_lost(self, store: Store) -> None:
        """Nobody knows whether it ended: it is not begun again."""
        store.schedules.put(schedule(policies=AT_LEAST_ONCE), now=NOON)
        never, begun = by_hand(run="run:never", at=BACKUP), by_hand(run="run:begun", at=BACKUP)
        start(store, begun, BACKUP)
        store.ledger.bring(never, now=BACKUP)
        witness = restore(store)
        refuse(store, witness)
        assert recover_at(store, witness, "skip").lost == 2
        assert store.ledger.claim_waiting(AFTER) == []
        for asked in (never, begun):
            kept = must(store.ledger.get("ada", "digest", BACKUP, asked.origin))
            assert (kept.state, kept.reason) == (State.DEAD, Reason.LOST)

    @pytest.mark.parametrize("how", ["skip", "fire"])
    def test_a_backfill_of_the_backup_is_stopped_unless_all_may_fire(
        self, store: Store, how: Recovery
    ) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.now = lambda: BACKUP
        backfills = Backfills(store)
        started = backfills.start(
            backfills.plan(BackfillRequest("ada", "digest", NOON - 3 * DAY, NOON))
        )
        witness = restore(store)
        refuse(store, witness)
        recover_at(store, witness, how, dry_run=True)
        assert backfills.get(started.name).state == "running"
        recover_at(store, witness, how)
        after = backfills.get(started.name)
        assert after.state == ("running" if how == "fire" else "stopped")
        assert tick(store, witness, AFTER) == (how == "fire")

    def test_a_recovery_that_stopped_leaves_nothing_leased(self, store: Store) -> None:
        under_way(store, 4)
        witness = restore(store)
        refuse(store, witness)
        turns = iter([True] * 2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("duetick.core.recovery.AT_ONCE", 1)
            first = recover(
                store, witness, now=AFTER, dry_run=False, may_go_on=lambda: next(turns, False)
            )
        assert (first.lost > 0, first.complete) == (True, False)
        assert first.lost + recover_at(store, witness, "skip").lost == 4
        assert store.ledger.claim_waiting(AFTER + HOUR) == []

    def test_a_recovery_that_died_after_it_leased_goes_on(self, store: Store) -> None:
        under_way(store, 3)
        witness = restore(store)
        refuse(store, witness)
        died = store.ledger.claim_waiting(RESTORE, 2)
        assert len(died) == 2
        assert recover_at(store, witness, "skip").lost == 3
        assert store.ledger.claim_waiting(AFTER + HOUR) == []
        assert {recorded(store, one).reason for one in died} == {Reason.LOST}

    def test_what_was_requested_after_the_restore_goes_on(self, store: Store) -> None:
        store.schedules.put(schedule(policies=AT_LEAST_ONCE), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        at = RESTORE + SECOND
        brought = store.ledger.bring(by_hand(at=at), now=at)
        assert recover_at(store, witness, "skip").lost == 0
        assert isinstance(brought, Occurrence)
        assert recorded(store, brought).state is State.QUEUED
        assert only(store.ledger.claim_waiting(AFTER + MINUTE)).id == brought.id

    def test_a_retry_that_is_due_after_the_restore_is_not_lost(self, store: Store) -> None:
        store.schedules.put(schedule(policies=TEN_HOURS), now=NOON)
        begun = start(store, replace(by_hand(at=BACKUP), policies=TEN_HOURS), BACKUP)
        store.ledger.settle(begun, FAILED, now=BACKUP)
        witness = restore(store)
        refuse(store, witness)
        assert recover_at(store, witness, "skip").lost == 0
        assert recorded(store, begun).state is State.RETRYING

    def test_with_fire_what_was_under_way_goes_on(self, store: Store) -> None:
        store.schedules.put(schedule(policies=AT_LEAST_ONCE), now=NOON)
        start(store, by_hand(at=BACKUP), BACKUP)
        witness = restore(store)
        refuse(store, witness)
        recover_at(store, witness, "fire")
        assert recorded(store, only(store.ledger.claim_waiting(AFTER))).state is State.QUEUED

    def test_a_row_that_cannot_be_read_is_left_to_the_tick(self, store: Store) -> None:
        store.index.upsert(row("bad", cron=BAD))
        store.schedules.put(schedule(cron="0 * * * *"), now=NOON)
        witness = KeptWitness(RESTORE - HOUR)
        refuse(store, witness)
        done = recover_at(store, witness, "skip")
        assert (done.schedules, done.recorded, done.complete) == (1, 6, True)

    @pytest.mark.parametrize("how", ["skip", "latest", "fire"])
    def test_a_recovery_without_time_for_all_goes_on_when_it_is_repeated(
        self, store: Store, how: Recovery
    ) -> None:
        """A call of the API ends after 15 seconds, however many schedules there are."""
        for number in range(4):
            store.schedules.put(schedule(f"k{number}", cron="0 * * * *"), now=NOON)
        witness = restore(store)
        refuse(store, witness)
        calls = list[Recovered]()
        while not any(one.complete for one in calls) and len(calls) < 5:
            enough = iter([True] * (1 if how == "fire" else 6))
            go_on = partial(next, enough, False)
            done = recover(store, witness, how, now=AFTER, dry_run=False, may_go_on=go_on)
            calls.append(done)
        assert calls[-1].complete
        assert len(calls) > 1
        assert sum(one.schedules for one in calls) == 4
        assert tick(store, witness, AFTER) == (0 if how == "skip" else 4)

    def test_an_occurrence_of_its_own_is_no_part_of_the_range(self, store: Store) -> None:
        store.schedules.put(schedule(cron="0 * * * *"), now=NOON)
        drain(store, NOON + 2 * HOUR, ahead=HOUR)
        assert store.pass_over("ada", "digest", RESTORE, now=AFTER)
        assert [one[:3] for one in ranges(store) if one[3]] == [(240, 360, 3)]
        assert not store.pass_over("ada", "digest", RESTORE, now=AFTER)

    def test_a_limit_of_runs_counts_no_unknown_time(self, store: Store) -> None:
        limited = Policies(max_runs=2)
        store.schedules.put(schedule(cron="0 * * * *", policies=limited), now=NOON)
        assert store.pass_over("ada", "digest", RESTORE, now=AFTER)
        assert must(store.schedules.get("ada", "digest")).runs == 0

    def test_a_schedule_without_another_time_is_done(self, store: Store) -> None:
        ends = Policies(ends_at=NOON + 3 * HOUR)
        store.schedules.put(schedule(cron="0 * * * *", policies=ends), now=NOON)
        assert store.pass_over("ada", "digest", RESTORE, now=AFTER)
        assert must(store.schedules.get("ada", "digest")).done_at == AFTER

    def test_a_begun_attempt_is_not_written_off(self, store: Store) -> None:
        begun = start(store, by_hand(), NOON)
        assert store.ledger.write_off(begun, now=NOON) is None
        assert recorded(store, begun).state is State.PROCESSING
