"""A-02: each verdict of explain, with the sentences that a person reads."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import get_args

import pytest
from duetick import Context, Flow
from duetick.core.explain import Explanation, explain
from duetick.core.store import Store
from duetick.core.wording import FORESEEN, RECORDED, explanation_json, say
from duetick.domain.attempts import SUCCEEDED, Outcome, reject
from duetick.domain.occurrence import Occurrence
from duetick.domain.pausing import pause
from duetick.domain.policies import Delivery, Misfire, Overlap, Policies
from duetick.domain.rows import new_occurrence
from duetick.domain.schedule import IndexRow, Schedule
from duetick.domain.states import Reason, State
from duetick.domain.verdicts import Verdict
from duetick.stores import open_store
from duetick.testing import fire

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NINE = 1_796_115_600_000
"""2026-12-01T09:00:00Z, a Tuesday."""
FORWARD = 1_806_195_600_000
"""2027-03-28T01:00:00Z: clocks in Berlin go from 02:00 to 03:00."""
BACK = 1_824_944_400_000
"""2027-10-31T01:00:00Z: clocks in Berlin go from 03:00 to 02:00."""
BERLIN = "Europe/Berlin"
RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE)
BROKEN = Outcome(State.FAILED, Reason.FAILED, "KeyError: row 7", told="Your card was declined.")


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(open_store("sqlite://")) as made:
        made.migrate()
        yield made


def put(
    store: Store,
    cron: str = "0 9 * * *",
    policies: Policies | None = None,
    timezone: str | None = None,
    now: int = NINE - HOUR,
) -> Schedule:
    wanted = Schedule("ann", "k", cron, "f", "act", timezone, policies=policies or Policies())
    return store.schedules.put(wanted, now=now)


def asked(store: Store, at: int = NINE, now: int = NINE - MINUTE) -> Explanation:
    return explain(store, "ann", "k", at, now)


def verdict(store: Store, at: int = NINE, now: int = NINE - MINUTE) -> Verdict:
    return asked(store, at, now).verdict


def claimed(store: Store, now: int = NINE) -> Occurrence:
    (found,) = store.index.claim_due(now)
    return found


def begin(store: Store, now: int = NINE) -> Occurrence:
    store.ledger.begin(claimed(store, now), now=now)
    found = store.ledger.get("ann", "k", now, "schedule")
    assert found
    return found


def ended(store: Store, outcome: Outcome) -> None:
    store.ledger.settle(begin(store), outcome, now=NINE + 1_000)


def test_a02_each_verdict_has_its_words() -> None:
    assert RECORDED.keys() | FORESEEN.keys() == set(get_args(Verdict))


def test_a02_fired(store: Store) -> None:
    put(store, timezone="UTC")
    ended(store, SUCCEEDED)
    assert say(asked(store, now=NINE + HOUR), operator=False) == [
        "It fired, and its action ran to its end.",
        "The history has it as succeeded, fired, since 2026-12-01T09:00:01Z.",
        "It began at 2026-12-01T09:00:00Z, 0 s after the fire time.",
        "Its cron since 2026-12-01T08:00:00Z: 0 9 * * * in UTC.",
        "The time is 2026-12-01T09:00:00+00:00 in UTC.",
    ]


def test_a02_an_attempt_that_began_early_by_the_clock_of_its_worker(store: Store) -> None:
    """It was claimed ahead, and the clock that began it is behind."""
    put(store)
    (held,) = store.index.claim_due(NINE - 5_000, ahead=10_000)
    store.ledger.begin(held, now=NINE - 2_500)
    found = asked(store, now=NINE - 2_000)
    assert found.verdict == "running"
    began = "It began at 2026-12-01T08:59:57.500Z, 2.5 s before the fire time."
    assert began in say(found, operator=False)


def test_a02_failed_tells_users_what_was_told_and_operators_what_was_raised(store: Store) -> None:
    put(store)
    ended(store, BROKEN)
    found = asked(store, now=NINE + HOUR)
    assert found.verdict == "failed"
    for_users, for_operators = (str(explanation_json(found, operator=o)) for o in (False, True))
    assert "declined" in for_users
    assert "row 7" not in for_users
    assert "row 7" in for_operators


def test_j07_an_event_tells_users_no_raised_error(store: Store) -> None:
    put(store, policies=RETRIED)
    ended(store, replace(BROKEN, told=None))
    found = asked(store, now=NINE + 2_000)
    assert found.verdict == "will_retry"
    assert "row 7" not in str(explanation_json(found, operator=False))
    (event,) = found.events
    shown = explanation_json(found, operator=True)["events"]
    assert isinstance(shown, list)
    assert "row 7" in str(shown[0])
    assert event.after is State.RETRYING


def test_a02_a_retry_that_a_pause_holds_is_said_to_be_held(store: Store) -> None:
    made = put(store, policies=RETRIED)
    ended(store, BROKEN)
    store.schedules.put(pause(made, "", None, NINE + 2_000), now=NINE + 2_000)
    lines = say(asked(store, now=NINE + 3_000), operator=False)
    assert "The schedule is paused: it follows when the pause is over." in lines


def test_a02_rejected(store: Store) -> None:
    put(store)
    ended(store, reject("no such action"))
    found = asked(store, now=NINE + HOUR)
    assert found.verdict == "rejected"
    assert any("no such action" in line for line in say(found, operator=False))


def test_a02_running_and_lost(store: Store) -> None:
    put(store)
    begin(store)
    assert verdict(store, now=NINE + 1_000) == "running"
    assert verdict(store, now=NINE + HOUR) == "lost"
    store.ledger.claim_waiting(NINE + HOUR)
    found = asked(store, now=NINE + HOUR)
    assert found.verdict == "lost"
    assert any("never settled" in line for line in say(found, operator=False))


def test_a02_missed_says_what_the_misfire_policy_does(store: Store) -> None:
    put(store, policies=Policies(misfire=Misfire.SKIP, grace=60))
    before = asked(store, now=NINE + HOUR)
    store.index.claim_due(NINE + HOUR)
    after = asked(store, now=NINE + HOUR)
    assert before.verdict == after.verdict == "missed"
    assert before.occurrence is None
    rule = "A time is late after 60 s. Of late times, `misfire` skip fires none of them."
    assert rule in say(before, operator=False)
    assert rule in say(after, operator=False)


def test_a02_a_late_time_that_the_next_tick_fires(store: Store) -> None:
    put(store)
    found = asked(store, now=NINE + HOUR)
    assert found.verdict == "will_fire"
    assert any("no tick has claimed it yet" in line for line in say(found, operator=False))


def test_a02_paused_says_until_when_and_why(store: Store) -> None:
    made = put(store)
    until = NINE + HOUR
    store.schedules.put(pause(made, "rain", until, NINE - MINUTE), now=NINE - MINUTE)
    found = asked(store)
    told = "The pause (rain) began at 2026-12-01T08:59:00Z and lasts until 2026-12-01T10:00:00Z."
    assert (found.verdict, told in say(found, operator=False)) == ("paused", True)


@pytest.mark.parametrize("now", [NINE - MINUTE, NINE + DAY])
def test_a02_paused_without_an_end(store: Store, now: int) -> None:
    made = put(store)
    store.schedules.put(pause(made, "", None, NINE - HOUR), now=NINE - HOUR)
    found = asked(store, now=now)
    assert found.verdict == "paused"
    assert any("lasts until it is resumed" in line for line in say(found, operator=False))


def test_d08_a_late_edit_cancels_what_was_claimed(store: Store) -> None:
    made = put(store)
    claimed(store)
    later = NINE + 1_000
    store.schedules.put(pause(made, "", None, later), now=later)
    assert verdict(store, now=later) == "disabled"


def test_d08_superseded_and_deleted_are_foreseen(store: Store) -> None:
    made = put(store)
    claimed(store)
    store.schedules.put(replace(made, cron="0 10 * * *"), now=NINE + 1_000)
    assert verdict(store, now=NINE + 2_000) == "superseded"
    store.schedules.delete("ann", "k", now=NINE + 3_000)
    assert verdict(store, now=NINE + 4_000) == "schedule_deleted"


@pytest.mark.parametrize(("overlap", "then"), [(Overlap.SKIP, "skipped"), (Overlap.WAIT, "waits")])
def test_d08_overlap_is_foreseen_while_another_runs(
    store: Store, overlap: Overlap, then: str
) -> None:
    put(store, "* * * * *", Policies(overlap=overlap, timeout=600), now=NINE - MINUTE)
    begin(store)
    found = asked(store, NINE + MINUTE, NINE + 30_000)
    assert found.verdict == "may_overlap"
    assert any(then in line for line in say(found, operator=False))


def test_d08_overlap_that_happened(store: Store) -> None:
    put(store, "* * * * *", Policies(timeout=600), now=NINE - MINUTE)
    begin(store)
    second = claimed(store, NINE + MINUTE)
    store.ledger.begin(second, now=NINE + MINUTE)
    assert verdict(store, NINE + MINUTE, NINE + HOUR) == "overlap"


def test_l01_a_used_up_limit(store: Store) -> None:
    put(store, policies=Policies(max_runs=1))
    ended(store, SUCCEEDED)
    found = asked(store, NINE + DAY, NINE + HOUR)
    assert found.verdict == "quota"
    assert "It has had 1 of 1 runs." in say(found, operator=False)
    assert found.upcoming == ()
    assert verdict(store, NINE + DAY, NINE + 2 * DAY) == "quota"


@pytest.mark.parametrize("at", [NINE, NINE + 9 * DAY])
def test_a02_outside_of_the_window(store: Store, at: int) -> None:
    put(store, policies=Policies(starts_at=NINE + HOUR, ends_at=NINE + 3 * DAY))
    found = asked(store, at)
    lines = say(found, operator=False)
    assert found.verdict == "outside_window"
    assert "The window ends at 2026-12-04T09:00:00Z." in lines


def test_a02_a_time_between_fire_times_names_those_beside_it(store: Store) -> None:
    made = put(store)
    store.schedules.put(replace(made, cron="0 7 * * *"), now=NINE + HOUR)
    found = asked(store, NINE + 2 * HOUR)
    assert found.verdict == "not_a_fire_time"
    assert (found.judged.before, found.judged.after) == (NINE, NINE + DAY - 2 * HOUR)


def test_c01_a_skipped_time_and_the_rule_of_the_clock(store: Store) -> None:
    put(store, "30 2 * * *", timezone=BERLIN)
    fires = asked(store, FORWARD, FORWARD - HOUR)
    assert fires.verdict == "will_fire"
    assert say(fires, operator=False)[-2:] == [
        "Clocks go forward at 2027-03-28T01:00:00Z: "
        "the local times from 02:00 to before 03:00 do not exist.",
        "With `gap` run, a fire time among them fires once, right then.",
    ]


def test_c01_gap_skip_leaves_a_skipped_time_out(store: Store) -> None:
    put(store, "30 2 * * *", Policies(gap="skip"), BERLIN)
    found = asked(store, FORWARD, FORWARD - HOUR)
    assert found.verdict == "skipped_by_clock"
    assert "With `gap` skip, a fire time among them does not fire." in say(found, operator=False)


def test_c01_the_second_pass_of_a_repeated_time(store: Store) -> None:
    put(store, "30 2 * * *", timezone=BERLIN)
    first, second = BACK - HOUR // 2, BACK + HOUR // 2
    assert verdict(store, first, first - HOUR) == "will_fire"
    found = asked(store, second, first - HOUR)
    assert found.verdict == "repeated_by_clock"
    assert say(found, operator=False)[-1] == (
        "With `repeat` first, a fire time among them fires on the first pass only."
    )


@pytest.mark.parametrize(
    ("cron", "says"), [("rate(1 hour)", "elapsed time"), ("*/30 * * * *", "real time")]
)
def test_c01_what_a_clock_change_is_to_other_expressions(
    store: Store, cron: str, says: str
) -> None:
    put(store, cron, timezone=BERLIN, now=FORWARD - 2 * HOUR)
    found = asked(store, FORWARD, FORWARD - HOUR)
    assert found.verdict == "will_fire"
    assert says in say(found, operator=False)[-1]


def test_a02_no_schedule_before_and_after(store: Store) -> None:
    put(store)
    assert verdict(store, NINE - DAY) == "no_schedule"
    store.schedules.delete("ann", "k", now=NINE - MINUTE)
    found = asked(store, NINE, NINE + DAY)
    assert found.verdict == "no_schedule"
    assert "The schedule was deleted at 2026-12-01T08:59:00Z." in say(found, operator=False)


def test_m03_unreadable_says_what_cannot_be_read(store: Store) -> None:
    put(store)
    kept = store.index.get("ann", "k")
    assert kept
    store.index.upsert(replace(kept, cron="75 * * * *"))
    assert verdict(store, now=NINE) == "poisoned"
    assert verdict(store, NINE + DAY, NINE - 1) == "unreadable"
    store.index.claim_due(NINE)
    assert verdict(store, now=NINE + 1) == "poisoned"
    found = asked(store, NINE + DAY, NINE + 1)
    assert found.verdict == "unreadable"
    assert any("75" in line for line in say(found, operator=False))


def test_m05_a_row_without_a_record(store: Store) -> None:
    store.index.upsert(IndexRow("ann", "k", "0 9 * * *", None, NINE))
    assert verdict(store, NINE + DAY) == "will_fire"
    assert verdict(store, NINE - DAY) == "unknown"
    assert verdict(store, NINE - HOUR) == "not_a_fire_time"


def test_t08_the_spread_is_told(store: Store) -> None:
    put(store, policies=Policies(spread=600))
    lines = say(asked(store), operator=False)
    assert any(line.startswith("Its place in the spread of 600 s is ") for line in lines)


def test_a03_a_run_by_hand_at_the_very_time_is_told_besides(store: Store) -> None:
    made = put(store)
    wanted = store.schedules.get(made.user_id, made.key)
    assert wanted
    store.ledger.bring(new_occurrence(wanted, NINE + 5, "run:1", NINE + 5), now=NINE + 5)
    found = asked(store, NINE + 5, NINE + 6)
    assert found.verdict == "not_a_fire_time"
    assert any("run:1" in line for line in say(found, operator=False))


def test_a02_the_next_ten_come_with_it(store: Store) -> None:
    put(store)
    assert [one.at for one in asked(store).upcoming] == [NINE + n * DAY for n in range(10)]


def test_a02_an_action_explains_a_schedule_of_its_user() -> None:
    flow, told = Flow("f"), list[object]()

    @flow.action("act")
    def act(_given: None, ctx: Context) -> None:
        told.extend(ctx.schedules.explain("fired", at=at)["verdict"] for at in (None, NINE + DAY))

    assert fire(flow, action="act").state == "succeeded"
    assert told == ["running", "will_fire"]
