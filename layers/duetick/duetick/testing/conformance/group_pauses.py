"""O-02: a pause of a user, a flow or everything is one row, and the outcome of its times."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.errors import InvalidSchedule
from duetick.domain.group_pauses import GroupPause
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    refused,
    run,
    start,
)

SCOPES = ("user:ada", "flow:reminders", "all")
OTHERS = ("user:bob", "flow:other")

every_scope = pytest.mark.parametrize("scope", SCOPES)


def tick(store: Store, now: int, *, ahead: int = 0) -> list[Occurrence]:
    """Announce how far the tick claims, then claim, as a tick does."""
    return drain(store, now, ahead=ahead, pauses=store.pauses.announce(now, now + ahead))


def retries(store: Store, now: int) -> Sequence[Occurrence]:
    """Lease the occurrences that wait, as a tick does."""
    pauses = store.pauses.announce(now, now)
    return list(store.ledger.claim_waiting(now, pauses=pauses))


def minutes(found: Sequence[Occurrence]) -> list[int]:
    """Return the nominal times in minutes after noon."""
    return sorted((one.nominal_at - NOON) // MINUTE for one in found)


def history(store: Store, key: str = "digest") -> list[int]:
    """Return the nominal times that the ledger has, in minutes after noon."""
    return minutes(store.ledger.find("ada", key, limit=1_000))


def faults(store: Store, now: int) -> list[str]:
    """Return the faults that verify finds."""
    return [str(one) for _, one in verify(store, 0, now, now=now).faults]


def pause(store: Store, scope: str = "all", at: int = NOON, until: int | None = None) -> GroupPause:
    """Pause a scope."""
    return store.pauses.pause(scope, now=at, until=until)


class GroupPauseConformance(StoreSuite):
    """Claims advance rows over the times of a pause; begins refuse these times; verify reads the
    pause.
    """

    @every_scope
    def test_o02_a_claim_advances_what_a_pause_covers_and_records_nothing(
        self, store: Store, scope: str
    ) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, scope)
        assert tick(store, NOON + 3 * MINUTE) == []
        assert history(store) == []
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 4 * MINUTE
        assert faults(store, NOON + 3 * MINUTE) == []

    @pytest.mark.parametrize("scope", OTHERS)
    def test_o02_a_pause_of_others_changes_nothing(self, store: Store, scope: str) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, scope)
        one = only(tick(store, NOON + MINUTE))
        assert start(store, one, NOON + MINUTE).attempts == 1

    @every_scope
    def test_o02_when_it_ends_what_comes_due_next_fires(self, store: Store, scope: str) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, scope)
        tick(store, NOON + 3 * MINUTE)
        ended = only(store.pauses.resume(scope, now=NOON + 3 * MINUTE + SECOND))
        assert ended.until == NOON + 3 * MINUTE + SECOND
        assert minutes(tick(store, NOON + 5 * MINUTE)) == [4, 5]
        assert faults(store, NOON + 5 * MINUTE) == []

    def test_o02_it_ends_by_itself_and_its_times_do_not_fire_afterwards(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, until=NOON + 3 * MINUTE)
        assert minutes(tick(store, NOON + 4 * MINUTE)) == [3, 4]
        assert history(store) == [3, 4]
        assert faults(store, NOON + 4 * MINUTE) == []

    def test_o02_downtime_across_its_end_fires_none_of_its_times(self, store: Store) -> None:
        policies = Policies(misfire=Misfire.ALL, catch_up=10)
        store.schedules.put(schedule(cron="0 * * * *", policies=policies), now=NOON)
        pause(store, at=NOON + HOUR + MINUTE)
        store.pauses.resume("all", now=NOON + 3 * HOUR + MINUTE)
        tick(store, NOON + 5 * HOUR + SECOND)
        every = store.ledger.find("ada", "digest")
        assert [(one.nominal_at - NOON) // HOUR for one in every] == [5, 4, 1]
        assert faults(store, NOON + 5 * HOUR + SECOND) == []

    def test_o02_what_is_missed_around_it_is_a_range_on_each_side(self, store: Store) -> None:
        policies = Policies(misfire=Misfire.SKIP)
        store.schedules.put(schedule(cron="0 * * * *", policies=policies), now=NOON)
        pause(store, at=NOON + 2 * HOUR + MINUTE)
        store.pauses.resume("all", now=NOON + 4 * HOUR + MINUTE)
        tick(store, NOON + 7 * HOUR + 30 * MINUTE)
        every = store.ledger.find("ada", "digest")
        spans = [(o.nominal_at, o.range_end, o.count) for o in reversed(every)]
        hours = [(a - NOON) // HOUR for a, _, _ in spans], [(b or 0) - NOON for _, b, _ in spans]
        assert (hours[0], [end // HOUR for end in hours[1]]) == ([1, 5], [2, 7])
        assert [count for *_, count in spans] == [2, 3]
        assert faults(store, NOON + 8 * HOUR) == []

    def test_o02_a_tick_that_stands_still_lets_the_pause_end_later(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store)
        now, ahead = NOON + MINUTE, 2 * MINUTE
        seen = store.pauses.announce(now, now + ahead)
        ended = only(store.pauses.resume("all", now=now + SECOND))
        assert ended.until == now + ahead + 1
        assert drain(store, now, ahead=ahead, pauses=seen) == []
        assert minutes(tick(store, NOON + 4 * MINUTE)) == [4]
        assert faults(store, NOON + 4 * MINUTE) == []

    def test_o02_a_tick_that_began_before_the_pause_records_and_nothing_begins(
        self, store: Store
    ) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        claimed = only(drain(store, NOON + MINUTE))
        pause(store, at=NOON + MINUTE)
        answer = refused(store.ledger.begin(claimed, now=NOON + MINUTE + SECOND))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.PAUSED)
        assert faults(store, NOON + MINUTE + SECOND) == []

    @every_scope
    def test_o02_what_was_claimed_before_and_has_not_begun_is_cancelled(
        self, store: Store, scope: str
    ) -> None:
        store.schedules.put(schedule(), now=NOON - SECOND)
        claimed = only(tick(store, SOON))
        pause(store, scope, at=SOON + SECOND)
        answer = refused(store.ledger.begin(claimed, now=SOON + SECOND))
        assert answer.reason is Reason.PAUSED
        assert recorded(store, claimed).state is State.CANCELLED

    def test_o02_its_time_does_not_begin_after_it(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON - SECOND)
        claimed = only(drain(store, SOON))
        pause(store, at=NOON, until=NOON + 2 * SECOND)
        answer = refused(store.ledger.begin(claimed, now=NOON + 3 * SECOND))
        assert answer.reason is Reason.PAUSED

    @every_scope
    def test_t04_what_has_begun_once_is_held_and_follows(self, store: Store, scope: str) -> None:
        store.schedules.put(schedule(policies=AT_LEAST_ONCE), now=NOON - SECOND)
        running = start(store, only(tick(store, SOON)), SOON)
        store.ledger.settle(running, FAILED, now=SOON)
        pause(store, scope, at=SOON + SECOND)
        assert retries(store, NOON + HOUR) == []
        assert recorded(store, running).state is State.RETRYING
        store.pauses.resume(scope, now=NOON + 2 * DAY)
        later = NOON + 2 * DAY + 2 * MINUTE
        assert start(store, only(retries(store, later)), later).attempts == 2

    def test_t04_a_leased_retry_is_put_off_by_its_begin(self, store: Store) -> None:
        store.schedules.put(schedule(policies=AT_LEAST_ONCE), now=NOON - SECOND)
        running = start(store, only(tick(store, SOON)), SOON)
        store.ledger.settle(running, FAILED, now=SOON)
        leased = only(retries(store, NOON + MINUTE))
        pause(store, at=NOON + MINUTE)
        answer = refused(store.ledger.begin(leased, now=NOON + MINUTE))
        assert (answer.verdict, answer.reason) == ("in_progress", Reason.PAUSED)
        held = recorded(store, leased)
        assert (held.state, held.due_at) == (State.RETRYING, NOON + 2 * MINUTE)

    def test_t04_a_held_retry_follows_when_a_pause_ends_by_itself(self, store: Store) -> None:
        store.schedules.put(schedule(policies=AT_LEAST_ONCE), now=NOON - SECOND)
        running = start(store, only(tick(store, SOON)), SOON)
        pause(store, at=SOON, until=NOON + MINUTE)
        store.ledger.settle(running, FAILED, now=SOON)
        assert retries(store, NOON + 59 * SECOND) == []
        again = only(retries(store, NOON + 2 * MINUTE))
        assert start(store, again, NOON + 2 * MINUTE).attempts == 2

    def test_t04_what_runs_as_it_begins_runs_to_its_end(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON - SECOND)
        running = start(store, only(tick(store, SOON)), SOON)
        pause(store, at=SOON)
        settled = must(store.ledger.settle(running, SUCCEEDED, now=SOON + SECOND))
        assert settled.state is State.SUCCEEDED

    def test_a03_a_run_that_has_not_begun_does_not_begin_in_it(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON - SECOND)
        pause(store)
        answer = refused(run(store, by_hand(at=SOON), SOON))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.PAUSED)

    def test_m05_rows_without_a_record_are_paused_too(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        pause(store, "user:ada")
        assert tick(store, SOON) == []
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + MINUTE

    def test_m06_static_schedules_are_paused_with_their_flow(self, store: Store) -> None:
        static = replace(row("reminders/nightly", user="", cron=EACH_MINUTE), flow="reminders")
        store.index.upsert(static)
        pause(store, "flow:reminders")
        assert tick(store, SOON) == []

    def test_l01_an_at_in_a_pause_is_done(self, store: Store) -> None:
        store.schedules.put(schedule(cron="at(2027-03-01T12:01:00)"), now=NOON)
        pause(store)
        assert tick(store, NOON + MINUTE) == []
        assert must(store.schedules.get("ada", "digest")).done_at == NOON + MINUTE
        assert faults(store, NOON + 2 * MINUTE) == []

    def test_t04_a_limit_of_runs_does_not_count_what_a_pause_covers(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1)), now=NOON)
        pause(store, until=NOON + 3 * MINUTE)
        assert minutes(tick(store, NOON + 3 * MINUTE)) == [3]
        assert must(store.schedules.get("ada", "digest")).runs == 0

    def test_j13_a_row_that_is_set_back_fires_none_of_its_times(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        pause(store, until=NOON + 3 * MINUTE)
        tick(store, NOON + 2 * MINUTE)
        store.index.upsert(kept)
        assert minutes(drain(store, NOON + 3 * MINUTE)) == [3]

    def test_t14_a_share_does_not_hold_up_what_only_advances(self, store: Store) -> None:
        for number in range(6):
            store.index.upsert(row(f"k{number}", cron=EACH_MINUTE))
        store.index.upsert(row("z", user="bob", cron=EACH_MINUTE, at=NOON + 1))
        pause(store, "user:ada")
        pauses = store.pauses.announce(SOON, SOON)
        made = store.index.claim_due(SOON, 6, share=1, pauses=pauses)
        assert [one.user_id for one in made] == ["bob"]

    def test_t14_a_claim_breaks_off_among_rows_that_only_advance(self, store: Store) -> None:
        for number in range(6):
            store.index.upsert(row(f"k{number}", cron=EACH_MINUTE))
        pause(store, "user:ada")
        pauses = store.pauses.announce(SOON, SOON)
        store.index.claim_due(SOON, 2, pauses=pauses, may_go_on=lambda: False)
        assert store.index.backlog(SOON) == 4

    def test_m04_a_flow_is_dated_so_that_its_pauses_explain_its_times(self, store: Store) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, "flow:reminders", until=NOON + 3 * MINUTE)
        tick(store, NOON + 2 * MINUTE)
        store.schedules.put(replace(made, flow="other"), now=NOON + 2 * MINUTE + SECOND)
        assert minutes(tick(store, NOON + 4 * MINUTE)) == [3, 4]
        assert faults(store, NOON + 4 * MINUTE) == []

    def test_m04_a_due_time_belongs_to_the_flow_in_which_it_is_claimed(self, store: Store) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, "flow:other")
        store.schedules.put(replace(made, flow="other"), now=NOON + 2 * MINUTE)
        assert tick(store, NOON + 3 * MINUTE) == []
        assert faults(store, NOON + 3 * MINUTE) == []

    def test_m04_a_due_time_belongs_to_the_last_of_several_flows(self, store: Store) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, "flow:last")
        for flow in ("other", "third", "last"):
            store.schedules.put(replace(made, flow=flow), now=NOON + 2 * MINUTE)
        assert tick(store, NOON + 3 * MINUTE) == []
        assert faults(store, NOON + 3 * MINUTE) == []

    def test_a02_a_missing_time_outside_of_it_is_a_fault(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, until=NOON + 2 * MINUTE)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, next_fire_at=NOON + 5 * MINUTE))
        _, one = only(verify(store, 0, NOON + 5 * MINUTE, now=NOON + 5 * MINUTE).faults)
        assert (one.problem, one.first, one.last, one.counted) == (
            "missing",
            NOON + 2 * MINUTE,
            NOON + 4 * MINUTE,
            3,
        )

    def test_o02_a_pause_is_told_and_can_be_read_back(self, store: Store) -> None:
        made = store.pauses.pause("user:a#b", note="calm", by="ops", until=NOON + HOUR, now=NOON)
        again = store.pauses.pause("user:a#b", note="calm", until=NOON + HOUR, now=SOON)
        assert (again.order, again.by) == (made.order, "ops")
        store.pauses.resume("user:a#b", by="night", now=SOON)
        ended = only(store.pauses.since(NOON).every)
        told = (ended.note, ended.by, ended.since, ended.until, ended.resumed_by)
        assert told == ("calm", "ops", NOON, SOON, "night")
        assert store.pauses.resume("user:a#b", now=SOON) == []

    def test_o02_another_pause_of_a_scope_takes_the_place_of_the_one_before(
        self, store: Store
    ) -> None:
        pause(store, until=NOON + HOUR)
        pause(store, at=NOON, until=NOON + MINUTE)
        standing = [one for one in store.pauses.since(NOON - 1).every if one.may_end(NOON)]
        assert [one.until for one in standing] == [NOON + MINUTE]

    def test_o02_it_stands_until_no_row_is_due_for_its_times(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        pause(store, until=NOON + 2 * MINUTE)
        later = NOON + 2 * HOUR
        assert store.pauses.close_over(later) == 0
        tick(store, later)
        assert store.pauses.close_over(later) == 1
        assert store.shelf.standing() == []
        assert faults(store, later) == []

    def test_o02_a_scope_is_a_user_a_flow_or_all(self, store: Store) -> None:
        for wrong in ("ada", "user:", "flow:", "", "ALL"):
            with pytest.raises(InvalidSchedule, match=r"user:<id>, flow:<name> or all"):
                store.pauses.pause(wrong, now=NOON)

    def test_o02_an_erased_user_takes_along_the_pauses_of_that_user_alone(
        self, store: Store
    ) -> None:
        for scope in ("user:ada", "user:ada#2", "user:ad", "flow:ada", "all"):
            pause(store, scope)
        store.pauses.resume("user:ada", now=SOON)
        store.pauses.pause("user:ada", now=SOON)
        store.erase("ada")
        kept = sorted(one.scope for one in store.pauses.since(0).every)
        assert kept == ["all", "flow:ada", "user:ad", "user:ada#2"]
