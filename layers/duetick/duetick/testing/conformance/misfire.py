"""J-09 as claims show it: times that fire late, and times that collapse into a range."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    ALLOW,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SKIP_MISSED,
    SOON,
    keys,
    row,
)
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    start,
)

GRACE = 150 * SECOND
ALL = Policies(misfire=Misfire.ALL)


def ranges(store: Store) -> list[Occurrence]:
    """Return the ranges of the schedule, oldest first."""
    found = store.ledger.find("ada", "digest", limit=500)
    return sorted((o for o in found if o.range_end is not None), key=lambda o: o.nominal_at)


def fire_late(store: Store, policies: Policies, late: int, cron: str = EACH_MINUTE) -> list[int]:
    """Claim a row that is due at noon so much later. Return its times, relative to noon."""
    store.index.upsert(row(cron=cron, policies=policies))
    return sorted(o.nominal_at - NOON for o in drain(store, NOON + late))


class MisfireConformance(StoreSuite):
    """Within the grace, each time fires. Past it, the policy decides."""

    @pytest.mark.parametrize("misfire", list(Misfire))
    def test_j09_on_time_every_policy_fires(self, store: Store, misfire: Misfire) -> None:
        assert fire_late(store, Policies(misfire=misfire), SECOND) == [0]

    @pytest.mark.parametrize("misfire", list(Misfire))
    def test_j09_each_time_within_the_grace_fires(self, store: Store, misfire: Misfire) -> None:
        assert fire_late(store, Policies(misfire=misfire), GRACE) == [0, MINUTE, 2 * MINUTE]
        assert ranges(store) == []

    def test_j09_latest_fires_the_newest_of_those_past_their_grace(self, store: Store) -> None:
        assert fire_late(store, Policies(), 3 * DAY + HOUR, cron="0 12 * * *") == [3 * DAY]

    def test_j09_latest_fires_no_late_one_where_one_is_on_time(self, store: Store) -> None:
        assert fire_late(store, Policies(), HOUR) == [HOUR - 2 * MINUTE, HOUR - MINUTE, HOUR]

    def test_j09_skip_fires_none_that_is_past_its_grace(self, store: Store) -> None:
        assert fire_late(store, SKIP_MISSED, 3 * DAY + HOUR, cron="0 12 * * *") == []

    def test_j09_skip_fires_those_within_the_grace(self, store: Store) -> None:
        assert fire_late(store, SKIP_MISSED, HOUR) == [HOUR - 2 * MINUTE, HOUR - MINUTE, HOUR]

    def test_j09_all_fires_each_up_to_its_bound(self, store: Store) -> None:
        self.needs(Capability.MANY_UNDER_WAY)
        self._fires_all(store, replace(ALL, catch_up=10))

    def test_j09_all_is_bounded(self, store: Store) -> None:
        self._fires_all(store, replace(ALL, catch_up=3))

    def _fires_all(self, store: Store, policies: Policies) -> None:
        store.index.upsert(row(policies=policies))
        drain(store, SOON + 20 * DAY + HOUR)
        found = store.ledger.find("ada", "digest", limit=500)
        alive = sorted(o.nominal_at for o in found if o.range_end is None)
        bound = policies.catch_up
        assert alive == [NOON + (21 - bound + n) * DAY for n in range(bound)]

    def test_i13_a_row_with_thousands_of_times_to_fire_delays_no_other(self, store: Store) -> None:
        """A store may limit the occurrences under way: then only that row waits for room."""
        policies = replace(ALLOW, grace=86_400)
        store.index.upsert(
            row("busy", cron="rate(10 seconds)", at=NOON + 10 * SECOND, policies=policies)
        )
        store.index.upsert(row("good", at=NOON + DAY))
        assert "good" in keys(drain(store, SOON + DAY))

    def test_j09_what_there_is_no_room_for_fires_when_there_is(self, store: Store) -> None:
        policies = replace(ALLOW, grace=86_400)
        store.index.upsert(row("busy", cron=EACH_MINUTE, policies=policies))
        times, late = list[int](), SOON + 2 * HOUR
        while leased := drain(store, late):
            for one in leased:
                store.ledger.settle(start(store, one, late), SUCCEEDED, now=late)
                times.append(one.nominal_at)
        assert sorted(times) == [NOON + n * MINUTE for n in range(121)]

    def test_j09_all_is_paced(self, store: Store) -> None:
        store.index.upsert(row(policies=replace(ALL, catch_up=3)))
        now = NOON + 2 * DAY + HOUR
        assert only(drain(store, now)).nominal_at == NOON
        handed_out: list[Occurrence] = []
        for minutes in (1, 2):
            handed_out += store.ledger.claim_waiting(now + minutes * MINUTE - 1)
            handed_out += store.ledger.claim_waiting(now + minutes * MINUTE)
        times = [o.nominal_at for o in handed_out if o.nominal_at > NOON]
        assert list(dict.fromkeys(times)) == [NOON + DAY, NOON + 2 * DAY]

    def test_j09_what_is_collapsed_is_one_row_with_range_and_count(self, store: Store) -> None:
        fire_late(store, Policies(), 3 * DAY + HOUR, cron="0 12 * * *")
        missed = only(ranges(store))
        assert (missed.state, missed.reason) == (State.CANCELLED, Reason.MISSED)
        assert (missed.nominal_at, missed.range_end) == (NOON, NOON + 2 * DAY)
        assert missed.count == 3

    def test_j09_a_skipped_single_time_is_a_range_of_one(self, store: Store) -> None:
        fire_late(store, SKIP_MISSED, HOUR, cron="0 12 * * *")
        missed = only(ranges(store))
        assert (missed.nominal_at, missed.range_end, missed.count) == (NOON, NOON, 1)

    def test_j09_nothing_older_than_the_longest_lateness_fires(self, store: Store) -> None:
        policies = replace(ALL, longest_lateness=36 * 3_600)
        assert fire_late(store, policies, 3 * DAY + HOUR, cron="0 12 * * *") == [2 * DAY]
        assert only(ranges(store)).count == 2

    def test_j09_a_grace_does_not_stretch_the_longest_lateness(self, store: Store) -> None:
        policies = Policies(longest_lateness=60)
        assert fire_late(store, policies, 100 * SECOND, cron="0 12 * * *") == []
        assert only(ranges(store)).count == 1

    def test_t10_after_downtime_there_is_one_decision_for_each_schedule(self, store: Store) -> None:
        """An hour of fires, one each thirty seconds, is not replayed one by one."""
        assert len(fire_late(store, Policies(grace=0), HOUR + 1, cron="rate(30 seconds)")) == 1
        assert only(ranges(store)).count == 120

    def test_a01_after_downtime_every_time_is_accounted_for(self, store: Store) -> None:
        times = fire_late(store, Policies(), 2 * HOUR + 90 * SECOND)
        missed = only(ranges(store))
        assert missed.count + len(times) == 122
        assert missed.range_end == NOON + times[0] - MINUTE


class LookAheadConformance(StoreSuite):
    """T-06 and T-08: claims ahead of time, and fires spread over a window."""

    def test_t06_each_time_in_the_window_is_an_occurrence(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row(cron=EACH_MINUTE))
        found = drain(store, SOON, ahead=2 * MINUTE)
        assert sorted(o.nominal_at - NOON for o in found) == [0, MINUTE, 2 * MINUTE]

    def test_t06_the_next_time_is_the_first_after_the_window(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row(cron=EACH_MINUTE))
        drain(store, SOON, ahead=2 * MINUTE)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 3 * MINUTE

    def test_t06_what_is_due_ahead_alone_is_claimed(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row())
        assert only(drain(store, SOON - MINUTE, ahead=MINUTE)).due_at == NOON

    def test_t06_two_windows_that_overlap_make_each_time_once(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row(cron=EACH_MINUTE))
        found = drain(store, SOON, ahead=2 * MINUTE)
        found += drain(store, SOON + MINUTE, ahead=2 * MINUTE)
        times = [o.nominal_at - NOON for o in found]
        assert sorted(times) == [0, MINUTE, 2 * MINUTE, 3 * MINUTE]

    def test_t06_no_policy_applies_to_the_future(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row(cron=EACH_MINUTE, policies=replace(SKIP_MISSED, grace=0)))
        found = drain(store, SOON + 30 * SECOND, ahead=2 * MINUTE)
        assert sorted(o.nominal_at - NOON for o in found) == [MINUTE, 2 * MINUTE]

    def test_t06_a_lease_ahead_lasts_beyond_its_time(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row())
        ahead = only(drain(store, SOON - 2 * MINUTE, ahead=2 * MINUTE))
        assert ahead.lease_until == NOON + ahead.policies.lease_ms

    def test_t08_a_spread_moves_the_due_time_and_not_the_nominal_one(self, store: Store) -> None:
        store.index.upsert(row(policies=Policies(spread=3_600)))
        drain(store, SOON)
        waits = only(store.ledger.find("ada", "digest"))
        assert waits.nominal_at == NOON
        assert NOON < waits.due_at < NOON + HOUR
        assert waits.state is State.SCHEDULED

    def test_t08_what_is_spread_is_handed_out_at_its_due_time(self, store: Store) -> None:
        store.index.upsert(row(policies=Policies(spread=3_600)))
        drain(store, SOON)
        waits = only(store.ledger.find("ada", "digest"))
        assert list(store.ledger.claim_waiting(waits.due_at - 1)) == []
        assert only(store.ledger.claim_waiting(waits.due_at)).identity == waits.identity

    def test_t08_a_spread_is_the_same_every_day(self, store: Store) -> None:
        store.index.upsert(row(policies=Policies(spread=3_600)))
        for day in range(2):
            drain(store, SOON + day * DAY)
        second, first = store.ledger.find("ada", "digest")
        assert second.due_at - second.nominal_at == first.due_at - first.nominal_at
