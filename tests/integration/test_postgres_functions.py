"""The functions of the database decide as the shared ledger does, in every case that there is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from duetick.domain.policies import Backoff, Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import REASONS, Reason, State
from duetick.ports import Begun, Event, Outcome, Refused
from duetick.stores.ids import new_id
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.connecting import connect_to
from duetick.stores.postgres.database import PostgresDatabase
from duetick.stores.postgres.ledger import PostgresLedger
from duetick.stores.postgres.store import open_database
from duetick.stores.sql.ledger import SqlLedger
from duetick.stores.sql.rows import occurrence_params, schedule_params
from duetick.stores.sql.schedules import SqlSchedules
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.postgres import Postgres, drop_database, fresh_database

T = 1_700_000_040_000
CLEAR = "DELETE FROM occurrences; DELETE FROM schedules; DELETE FROM events"

RETRIES = st.builds(
    Retry,
    backoff=st.sampled_from(Backoff),
    attempts=st.sampled_from([1, 2, 5, 185]),
    first=st.sampled_from([1, 10, 3_600]),
    longest=st.sampled_from([3_600, 86_400]),
)
POLICIES = st.builds(
    Policies,
    delivery=st.sampled_from(Delivery),
    retry=st.one_of(st.just(Retry()), RETRIES),
    overlap=st.sampled_from(Overlap),
    timeout=st.sampled_from([1, 25, 900]),
    longest_lateness=st.sampled_from([None, 60]),
)
LEASES = st.sampled_from([None, T - 1, T, T + 1, T + 60_000])
ENDS = [(state, reason) for state, reasons in REASONS.items() for reason in sorted(reasons)]
RESTS = [
    *((state, None) for state in (State.SCHEDULED, State.QUEUED, State.PROCESSING, State.RETRYING)),
    *ENDS,
]
STANDS = st.one_of(st.just((State.QUEUED, None)), st.sampled_from(RESTS))
OUTCOMES = st.one_of(
    st.just(Outcome(State.SUCCEEDED, Reason.FIRED)),
    st.builds(
        Outcome,
        st.just(State.FAILED),
        st.sampled_from([Reason.FAILED, Reason.REJECTED]),
        st.sampled_from([None, "it rained", "nul\0"]),
    ),
    st.just(Outcome(State.CANCELLED, Reason.OPERATOR)),
)


@dataclass(frozen=True)
class Case:
    """What stands in the database before the question."""

    held: Occurrence | None
    schedule: Schedule | None
    running: Occurrence | None
    asked: Occurrence


SCHEDULES = st.builds(
    Schedule,
    st.just("ann"),
    st.just("k"),
    st.sampled_from(["* * * * *", "5 * * * *"]),
    st.just("flow"),
    st.just("act"),
    enabled=st.booleans(),
    policies=POLICIES,
    timing=st.sampled_from([5, 5, 7]),
)


@st.composite
def occurrences(draw: st.DrawFn, state: State, reason: Reason | None) -> Occurrence:
    return Occurrence(
        "ann",
        "k",
        "* * * * *",
        None,
        T,
        fence=draw(st.integers(1, 2)),
        origin=draw(st.sampled_from(["schedule", "schedule", "run:1"])),
        id="occ_1",
        state=state,
        reason=reason,
        due_at=T,
        attempts=draw(st.sampled_from([0, 1, 2, 5, 60])),
        lease_until=draw(LEASES),
        timing=draw(st.sampled_from([0, 5, 5])),
        policies=draw(POLICIES),
    )


@st.composite
def cases(draw: st.DrawFn, stands: st.SearchStrategy[tuple[State, Reason | None]]) -> Case:
    state, reason = draw(stands)
    held = draw(occurrences(state, reason))
    running = replace(
        held,
        nominal_at=T - 60_000,
        origin="schedule",
        id="occ_0",
        state=State.PROCESSING,
        reason=None,
        lease_until=draw(LEASES),
        policies=draw(POLICIES),
    )
    alone = state is State.PROCESSING or draw(st.booleans())
    return Case(
        held=held if draw(st.integers(0, 9)) else None,
        schedule=draw(SCHEDULES) if draw(st.integers(0, 4)) else None,
        running=None if alone else running,
        asked=replace(held, fence=draw(st.sampled_from([held.fence, held.fence, 1, 9]))),
    )


@dataclass
class Both:
    """The two ways, on one database."""

    database: PostgresDatabase
    at_once: PostgresLedger
    shared: SqlLedger

    def set_up(self, case: Case) -> None:
        with self.database.transaction() as session:
            session.script(CLEAR)
            if case.schedule:
                session.rows("schedule_put", schedule_params(case.schedule))
            for occurrence in filter(None, (case.held, case.running)):
                session.rows("occurrence_insert", occurrence_params(occurrence))

    def stands(self, case: Case) -> tuple[list[Occurrence], list[Event]]:
        """All that the ledger holds now."""
        names = [case.asked] + ([case.running] if case.running else [])
        found = [self.shared.get(*one.identity) for one in names]
        events = [event for one in names for event in self.shared.events(one)]
        return [one for one in found if one], events


@pytest.fixture(scope="module")
def both(postgres: Postgres) -> Iterator[Both]:
    url = fresh_database(postgres)
    database = PostgresDatabase(connect_to(read_address(url)), 2, code=1)
    open_database(database, None).migrate()
    count_run = SqlSchedules(database, database.now, new_id).count_run
    yield Both(
        database,
        PostgresLedger(database, None, database.now, new_id, count_run),
        SqlLedger(database, database.now, new_id, count_run),
    )
    database.close()
    drop_database(postgres, url)


EVERY = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@EVERY
@given(case=cases(STANDS))
def test_d08_begin_decides_as_the_shared_ledger_does(both: Both, case: Case) -> None:
    both.set_up(case)
    expected: Begun | Refused = both.shared.begin(case.asked, now=T)
    left = both.stands(case)
    both.set_up(case)
    assert both.at_once.begin(case.asked, now=T) == expected
    assert both.stands(case) == left


RUNS = st.one_of(st.just((State.PROCESSING, None)), st.sampled_from(RESTS))


@EVERY
@given(case=cases(RUNS), outcome=OUTCOMES)
def test_t04_settle_decides_as_the_shared_ledger_does(
    both: Both, case: Case, outcome: Outcome
) -> None:
    both.set_up(case)
    expected = both.shared.settle(case.asked, outcome, now=T)
    left = both.stands(case)
    both.set_up(case)
    assert both.at_once.settle(case.asked, outcome, now=T) == expected
    assert both.stands(case) == left


def test_t07_without_a_time_the_clock_of_the_database_decides(both: Both) -> None:
    held = Occurrence("ann", "k", "* * * * *", None, T, fence=1, id="occ_1", due_at=T)
    before = both.database._ask()  # `now` estimates: a millisecond beside the function's
    held = replace(held, lease_until=before + 60_000)
    both.set_up(Case(held, None, None, held))
    begun = both.at_once.begin(held)
    assert isinstance(begun, Begun)
    settled = both.at_once.settle(held, Outcome(State.SUCCEEDED, Reason.FIRED))
    assert settled is not None
    assert before <= begun.occurrence.updated_at <= settled.updated_at <= both.database._ask()
