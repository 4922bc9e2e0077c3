"""Fast equals general: one write has the effect that the book has, in every case."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

import pytest
from duetick.core.ids import new_id
from duetick.core.store import Ledger, ledger
from duetick.domain.attempts import Begun, Outcome, Refused
from duetick.domain.errors import DuetickError, StoreUnavailable
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import Record
from duetick.domain.states import State
from duetick.ports import Shelf
from duetick.stores.dynamodb.shelf import open_dynamodb
from duetick.stores.postgres.shelf import PostgresShelf, open_postgres
from duetick.stores.sql.queries import load
from duetick.stores.sqlite.shelf import open_sqlite
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.conformance.cases import MINUTE, OUTCOMES, Asked, Case, T, cases, of_hook, with_hook
from tests.conformance.general_way import general
from tests.conformance.standing import GIVEN, Standing, look, nameless, nameless_record, place
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import Postgres, drop_database, fresh_database

Answer = Begun | Refused | Occurrence | None


@dataclass
class Side:
    """One way over a shelf. Each placed schedule has a name of its own."""

    shelf: Shelf
    user_id: str
    numbers: Iterator[int] = field(default_factory=count)
    name: ScheduleName = ("", "")

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.shelf, self.shelf.now, new_id)

    def place(self, standing: Standing) -> None:
        """Another schedule, as it shall stand."""
        self.name = self.user_id, f"k{next(self.numbers)}"
        place(self.shelf, self.name, standing, T)

    def begin(self, asked: Asked, now: int) -> Answer:
        return _nameless(self.ledger.begin(self._own(asked), now=now))

    def settle(self, asked: Asked, outcome: Outcome, now: int) -> Answer:
        return _nameless(self.ledger.settle(self._own(asked), outcome, now=now))

    def begin_many(self, packed: Sequence[Asked], now: int) -> list[Answer]:
        """Begin several at once; each names its schedule."""
        return [_nameless(_answered(one)) for one in self.ledger.begin_many(packed, now=now)]

    def settle_many(self, ends: Sequence[tuple[Asked, Outcome]], now: int) -> list[Answer]:
        """Settle several at once."""
        return [_nameless(_answered(one)) for one in self.ledger.settle_many(ends, now=now)]

    def renew(self, asked: Asked, now: int) -> Answer:
        return _nameless(self.ledger.renew(self._own(asked), now=now))

    def release(self, asked: Asked, now: int) -> tuple[bool, Sequence[Occurrence]]:
        """Release it. Return True if that worked, and the occurrences that are lost."""
        lost: list[Occurrence] = []
        given_back = self.ledger.release(self._own(asked), now=now, on_lost=lost.append)
        return given_back, nameless(lost)

    def look(self, now: int) -> Standing:
        return look(self.shelf, self.name, now)

    def _own(self, asked: Asked) -> Asked:
        return replace(asked, user_id=self.name[0], key=self.name[1])


def _answered(one: Answer | DuetickError) -> Answer:
    assert not isinstance(one, DuetickError), one
    return one


def _nameless(answer: Answer) -> Answer:
    match answer:
        case Begun(occurrence, record):
            return Begun(nameless([occurrence])[0], nameless_record(record))
        case Occurrence():
            return nameless([answer])[0]
        case _:
            return answer


@dataclass
class Ways:
    """The fast way and the general one, on one database."""

    fast: Side
    general: Side

    def place(self, standing: Standing) -> None:
        """The same schedule for both."""
        self.fast.place(standing)
        self.general.place(standing)

    def begin(self, asked: Asked, now: int = T) -> Answer:
        """Both begin it, and agree."""
        answer = self.general.begin(asked, now)
        assert self.fast.begin(asked, now) == answer
        return answer

    def settle(self, asked: Asked, outcome: Outcome, now: int = T) -> None:
        """Both settle it, and agree."""
        answer = self.general.settle(asked, outcome, now)
        assert self.fast.settle(asked, outcome, now) == answer

    def renew(self, asked: Asked, now: int = T) -> None:
        """Both renew its lease, and agree."""
        answer = self.general.renew(asked, now)
        assert self.fast.renew(asked, now) == answer

    def release(self, asked: Asked, now: int = T) -> None:
        """Both give its lease back, and agree."""
        answer = self.general.release(asked, now)
        assert self.fast.release(asked, now) == answer

    def agree(self, now: int = T) -> None:
        """All that is kept is the same."""
        assert self.fast.look(now) == self.general.look(now)


def ways_of(shelf: Shelf) -> Ways:
    shelf.migrate()
    return Ways(Side(shelf, "fast"), Side(general(shelf), "general"))


@pytest.fixture(scope="module")
def on_sqlite() -> Iterator[Ways]:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    shelf = open_sqlite(lambda: connection)
    yield ways_of(shelf)
    shelf.close()


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Ways]:
    url = fresh_database(postgres)
    shelf = open_postgres(url)
    yield ways_of(shelf)
    shelf.close()
    drop_database(postgres, url)


@pytest.fixture(scope="module")
def on_dynamodb_local(dynamodb_local: DynamoDB) -> Iterator[Ways]:
    shelf = open_dynamodb(dynamodb_local.table_url(table_name()), checks_clock=False)
    yield ways_of(shelf)
    shelf.close()


@pytest.fixture(scope="module")
def on_moto(moto: DynamoDB) -> Iterator[Ways]:
    shelf = open_dynamodb(moto.table_url(table_name()), checks_clock=False)
    yield ways_of(shelf)
    shelf.close()


@dataclass(frozen=True, slots=True)
class Trial:
    """Two ways, and the number of cases for which there is time."""

    ways: Ways
    cases: int


@pytest.fixture(
    params=[
        pytest.param(("on_sqlite", 200), id="SQLite"),
        pytest.param(("on_postgres", 120), id="Postgres", marks=pytest.mark.slow),
        pytest.param(("on_dynamodb_local", 35), id="DynamoDB Local", marks=pytest.mark.slow),
        pytest.param(("on_moto", 10), id="moto", marks=pytest.mark.slow),
    ],
)
def trial(request: pytest.FixtureRequest) -> Trial:
    """Each database that has fast ways."""
    name, number = request.param
    return Trial(request.getfixturevalue(name), number)


def check_begins(trial: Trial, odd: frozenset[str] = frozenset()) -> None:
    @settings(max_examples=trial.cases, phases=PHASES)
    @given(case=cases([(State.QUEUED, None)], odd))
    def decides_alike(case: Case) -> None:
        trial.ways.place(case.standing)
        trial.ways.begin(case.asked)
        trial.ways.agree()

    decides_alike()


def check_rivals(trial: Trial) -> None:
    """Each begins while others of its schedule run, wait, or are leased."""
    check_begins(trial, frozenset({"rivals"}))


def check_settles(trial: Trial) -> None:
    @settings(max_examples=trial.cases, phases=PHASES)
    @given(case=cases([(State.PROCESSING, None)]), outcome=OUTCOMES)
    def decides_alike(case: Case, outcome: Outcome) -> None:
        trial.ways.place(case.standing)
        trial.ways.settle(case.asked, outcome)
        trial.ways.agree()

    decides_alike()


def check_renewals(trial: Trial) -> None:
    @settings(max_examples=trial.cases, phases=PHASES)
    @given(case=cases([(State.PROCESSING, None)]))
    def decides_alike(case: Case) -> None:
        trial.ways.place(case.standing)
        trial.ways.renew(case.asked)
        trial.ways.agree()

    decides_alike()


def check_releases(trial: Trial) -> None:
    """Given back soon, or when its time may be over."""

    @settings(max_examples=trial.cases, phases=PHASES)
    @given(case=cases([(State.QUEUED, None)]), after=st.sampled_from([0, MINUTE, LONG]))
    def decides_alike(case: Case, after: int) -> None:
        trial.ways.place(case.standing)
        trial.ways.release(case.asked, T + after)
        trial.ways.agree(T + after)

    decides_alike()


def check_hooks(trial: Trial, told: Callable[[Case], Case]) -> None:
    """Schedules that name a failure hook are begun and settled; or the hooks themselves."""

    @settings(max_examples=trial.cases, phases=PHASES)
    @given(case=cases(BEGINNINGS), outcome=OUTCOMES)
    def decides_alike(case: Case, outcome: Outcome) -> None:
        case, ways = told(case), trial.ways
        ways.place(case.standing)
        answer = ways.begin(case.asked)
        held = answer.occurrence if isinstance(answer, Begun) else case.asked
        ways.settle(held, outcome)
        ways.agree()

    decides_alike()


def check_lives(trial: Trial) -> None:
    """Begin and settle one after another: a write meets what the write before it has left."""

    @settings(max_examples=trial.cases // 2, phases=PHASES)
    @given(case=cases(BEGINNINGS, frozenset({"rivals"})), steps=STEPS)
    def goes_on_alike(case: Case, steps: list[tuple[int, Outcome, int, int]]) -> None:
        ways, now, there = trial.ways, T, case.standing.occurrences
        ways.place(case.standing)
        for number, outcome, before, after in steps:
            held: Asked = there[number % len(there)] if there else case.asked
            now += before
            answer = ways.begin(held, now)
            now += after
            held = answer.occurrence if isinstance(answer, Begun) else held
            ways.settle(held, outcome, now)
        ways.agree(now)

    goes_on_alike()


def check_sharing(trial: Trial) -> None:
    """Two that were claimed before their schedule let them overlap begin side by side."""
    shared = Policies(overlap=Overlap.ALLOW)
    record = Record("ann", "k", "* * * * *", "flow", "act", policies=shared, version=1)
    record = replace(record, redefined_at=5, anchor=5, created_at=5, updated_at=7)
    claimed = Occurrence("ann", "k", record.cron, None, T, fence=1, id=f"{GIVEN} 0", flow="flow")
    leased = replace(claimed, state=State.QUEUED, due_at=T, lease_until=T + MINUTE, redefined_at=5)
    both = (leased, replace(leased, nominal_at=T - MINUTE, id=f"{GIVEN} 1"))
    trial.ways.place(Standing(record=record, mark=T, defined_at=5, occurrences=both))
    for one in both:
        assert isinstance(trial.ways.begin(one), Begun)
    trial.ways.agree()


def check_packs(trial: Trial) -> None:
    """Begin several at once, and settle those that began at once: each as in the general way."""

    @settings(max_examples=trial.cases // 3, phases=PHASES)
    @given(drawn=st.lists(st.tuples(cases(BEGINNINGS), OUTCOMES), min_size=2, max_size=5))
    def decides_alike(drawn: list[tuple[Case, Outcome]]) -> None:
        fast, slow = trial.ways.fast, trial.ways.general
        packed: list[Asked] = []
        alone: list[Asked] = []
        for case, _ in drawn:
            trial.ways.place(case.standing)
            for side, asked in ((fast, packed), (slow, alone)):
                asked.append(replace(case.asked, user_id=side.name[0], key=side.name[1]))
        begun = fast.begin_many(packed, T)
        assert begun == [_nameless(slow.ledger.begin(one, now=T)) for one in alone]
        for asked in (packed, alone):
            asked[:] = [held_of(each, one) for each, one in zip(asked, begun, strict=True)]
        outcomes = [outcome for _, outcome in drawn]
        settled = fast.settle_many([*zip(packed, outcomes, strict=True)], T)
        one_by_one = zip(alone, outcomes, strict=True)
        assert settled == [_nameless(slow.ledger.settle(*end, now=T)) for end in one_by_one]
        for one, other in zip(packed, alone, strict=True):
            fast.name, slow.name = (one.user_id, one.key), (other.user_id, other.key)
            trial.ways.agree()

    decides_alike()


def held_of(asked: Asked, answer: Answer) -> Asked:
    """Return the lease that a holder has in hand after a begin."""
    if not isinstance(answer, Begun):
        return asked
    return replace(answer.occurrence, user_id=asked.user_id, key=asked.key)


PHASES = (Phase.explicit, Phase.generate)
"""A case is not made smaller: that takes longer than to read it."""

LONG: Final = 70 * MINUTE
"""Until then an occurrence that never began is lost, whatever its policies say."""

BEGINNINGS: Final = [(State.QUEUED, None), (State.PROCESSING, None)]
LATER = st.sampled_from([0, 0, 1, MINUTE])
STEPS = st.lists(st.tuples(st.integers(0, 2), OUTCOMES, LATER, LATER), min_size=2, max_size=3)


def test_d08_a_begin_in_one_write_decides_as_the_book_does(trial: Trial) -> None:
    check_begins(trial)


def test_d08_a_begin_in_one_write_shares_the_place_as_the_book_does(trial: Trial) -> None:
    check_sharing(trial)


def test_t04_a_settle_in_one_write_decides_as_the_book_does(trial: Trial) -> None:
    check_settles(trial)


def test_t07_a_renewal_in_one_write_decides_as_the_book_does(trial: Trial) -> None:
    check_renewals(trial)


def test_t07_a_release_in_one_write_decides_as_the_book_does(trial: Trial) -> None:
    check_releases(trial)


def test_t04_what_follows_one_write_is_what_follows_a_change_of_the_book(trial: Trial) -> None:
    check_lives(trial)


def test_q01_a_begin_of_many_decides_as_the_book_does_of_each(trial: Trial) -> None:
    check_packs(trial)


LEASED: Final = "occurrence_move_leased"
MANY_BEGIN: Final = "occurrences_begin"
MANY_SETTLE: Final = "occurrences_move_leased"
SAME_POLICIES: Final = "coalesce(o.policies, '') = coalesce(:policies, '')"


@pytest.mark.slow
@pytest.mark.parametrize("told", [with_hook, of_hook])
def test_t04_a_failure_hook_is_written_by_each_way_as_by_the_other(
    trial: Trial, told: Callable[[Case], Case]
) -> None:
    check_hooks(trial, told)


def test_t04_a_fast_way_that_forgets_the_hook_is_caught(
    on_sqlite: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "has_hook", lambda _after: False)
    with pytest.raises(AssertionError):
        check_hooks(Trial(on_sqlite, 300), with_hook)


BREAKS: Final = {
    "lease": (check_begins, "occurrence_begin", "coalesce(o.lease_until, 0) > :now", "true"),
    "fence": (check_begins, "occurrence_begin", "o.fence = :fence", "o.fence > 0"),
    "place": (
        check_rivals,
        "occurrence_begin",
        "r.state <> 'retrying' OR (",
        "r.state <> 'retrying' OR (false AND ",
    ),
    "pause": (check_begins, "occurrence_begin", "s.pause IS NOT NULL", "false"),
    "policies": (check_begins, "occurrence_begin", "policies = s.policies", "policies = NULL"),
    "state": (check_settles, LEASED, "coalesce(o.state, '') = :before", "true"),
    "attempt": (check_releases, LEASED, "o.attempts = :attempts", "true"),
    "what began": (check_renewals, LEASED, SAME_POLICIES, "true"),
    "what was leased": (check_releases, LEASED, SAME_POLICIES, "true"),
    "its fence": (check_releases, LEASED, "o.fence = :fence", "true"),
    "a run": (check_begins, "occurrence_begin", "b.attempts = 1 THEN 1", "b.attempts = 1 THEN 0"),
    "a retry's run": (check_begins, "occurrence_begin", "b.attempts = 1", "b.attempts > 0"),
    "sharing": (check_sharing, "occurrence_begin", "coalesce(s.exclusive, 1)", "1"),
    "a pack's lease": (check_packs, MANY_BEGIN, "coalesce(o.lease_until, 0) > :now", "true"),
    "a pack's fence": (check_packs, MANY_BEGIN, "o.fence = given.fence", "o.fence > 0"),
    "a pack's runs": (check_packs, MANY_BEGIN, "s.user_id = b.user_id", "false"),
    "a pack's states": (check_packs, MANY_SETTLE, "coalesce(o.state, '') = given.before", "true"),
    "a pack's traces": (check_packs, MANY_SETTLE, "given.note IS NOT NULL", "false"),
}


OF_POSTGRES: Final = {"a run", "a retry's run", *(one for one in BREAKS if "a pack's" in one)}
"""SQLite counts runs by a statement of its own, and writes a pack one by one."""


@pytest.mark.slow
@pytest.mark.parametrize("broken", BREAKS)
def test_a_fast_way_that_is_broken_is_caught(
    on_postgres: Ways, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    check_catches(on_postgres, "postgres", monkeypatch, broken)


@pytest.mark.slow
@pytest.mark.parametrize("broken", sorted(BREAKS.keys() - OF_POSTGRES))
def test_a_fast_way_of_sqlite_that_is_broken_is_caught(
    on_sqlite: Ways, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    check_catches(on_sqlite, "sqlite", monkeypatch, broken)


def check_catches(ways: Ways, backend: str, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    check, name, part, instead = BREAKS[broken]
    queries = load(backend)
    if isinstance(ways.fast.shelf, PostgresShelf):  # its functions were made of the right queries
        monkeypatch.setattr(ways.fast.shelf, "_keeps", False)
    for each in [one for one in queries if one.startswith(name)]:
        assert part in queries[each]
        monkeypatch.setitem(queries, each, queries[each].replace(part, instead))
    with pytest.raises((AssertionError, StoreUnavailable, sqlite3.IntegrityError)):
        check(Trial(ways, 500))
