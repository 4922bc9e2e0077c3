"""Random schedules in the middle of their life, and questions about their occurrences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from duetick.domain.attempts import Outcome
from duetick.domain.failure_hooks import policies_of_hook
from duetick.domain.occurrence import Death
from duetick.domain.overlap import beside, may_hold_place
from duetick.domain.policies import Backoff, Delivery, Overlap, Policies, Retry
from duetick.domain.rows import row_of
from duetick.domain.schedule import Lease, Occurrence, Pause, Record
from duetick.domain.states import LEASED, REASONS, Reason, State
from hypothesis import strategies as st

from tests.conformance.standing import GIVEN, Standing

V = TypeVar("V")

Stand: TypeAlias = tuple[State, Reason | None]

T: Final = 1_700_000_040_000
MINUTE: Final = 60_000
BACKFILL: Final = "backfill:1"
HOOK: Final = "failure:schedule:9"
DEATH: Final = Death("occ_9", "schedule", Reason.FAILED, 1, T, "it rained", "rain")

RETRIES = st.builds(
    Retry,
    backoff=st.sampled_from(Backoff),
    attempts=st.sampled_from([1, 2, 5, 185]),
    first=st.sampled_from([1, 10, 3_600]),
    longest=st.sampled_from([3_600, 86_400]),
    jitter=st.sampled_from([0, 0, 50, 100]),
)
RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE)
POLICIES = st.builds(
    Policies,
    delivery=st.sampled_from(Delivery),
    retry=st.one_of(st.just(Retry()), RETRIES),
    overlap=st.sampled_from(Overlap),
    timeout=st.sampled_from([1, 25, 900]),
    longest_lateness=st.sampled_from([None, 60]),
    max_runs=st.sampled_from([None] * 6 + [1, 2]),
)
LEASES = st.sampled_from([None, T - 1, T, T + 1, T + MINUTE])
ENDS = [(state, reason) for state, reasons in REASONS.items() for reason in sorted(reasons)]
UNDER_WAY = (State.SCHEDULED, State.QUEUED, State.PROCESSING, State.RETRYING)
RESTS: list[Stand] = [*((state, None) for state in UNDER_WAY * 3), *ENDS]
RIVALS = st.sampled_from([State.PROCESSING, State.PROCESSING, State.QUEUED, State.RETRYING])

ODD: Final = (
    "no record",
    "enabled",
    "pause",
    "its cron",
    "its policies",
    "its dates",
    "runs",
    "row",
    "mark",
    "absent",
    "state",
    "lease",
    "date",
    "policies",
    "flow",
    "rivals",
    "fence",
    "asked by name",
    "asked under other policies",
    "asked of another attempt",
)
"""The parts that may differ from the everyday case. A case has at most three oddities: of more, one
hides the other.
"""

FAILURES = st.builds(
    Outcome,
    st.just(State.FAILED),
    st.sampled_from([Reason.FAILED, Reason.FAILED, Reason.REJECTED]),
    st.sampled_from([None, "it rained", "nul\0", "雨" * 400]),
    final=st.sampled_from([False, False, True]),
)
OUTCOMES = st.one_of(
    st.just(Outcome(State.SUCCEEDED, Reason.FIRED)),
    FAILURES,
    FAILURES,
    st.just(Outcome(State.CANCELLED, Reason.OPERATOR)),
)


Asked: TypeAlias = Occurrence | Lease
"""A hold on an occurrence, as whoever asks has it."""


@dataclass(frozen=True)
class Case:
    """A schedule as it stands before the question, and the lease of the question."""

    standing: Standing
    asked: Asked


@dataclass(frozen=True)
class Oddities:
    """The odd parts of a case are drawn; all others are the usual ones."""

    draw: st.DrawFn
    odd: frozenset[str]

    def of(self, name: str, usual: V, others: st.SearchStrategy[V]) -> V:
        """Return one of the others if this part is odd, else the usual one."""
        return self.draw(others) if name in self.odd else usual


def _record(odds: Oddities, policies: Policies) -> Record:
    redefined, created = odds.of("its dates", (5, 5), st.sampled_from([(7, 5), (7, 6), (7, 7)]))
    pauses = [Pause(1), Pause(1, until=T + 1), Pause(1, until=T)]
    return Record(
        "ann",
        "k",
        odds.of("its cron", "* * * * *", st.just("5 * * * *")),
        "flow",
        "act",
        enabled=odds.of("enabled", True, st.just(False)),
        policies=odds.of("its policies", policies, POLICIES),
        labels=odds.draw(st.sampled_from([{}, {"team": "one"}])),
        pause=odds.of("pause", None, st.sampled_from(pauses)),
        version=1,
        redefined_at=redefined,
        anchor=5,
        created_at=created,
        updated_at=7,
        runs=odds.of("runs", 0, st.sampled_from([1, 2])),
    )


def _occurrence(odds: Oddities, policies: Policies, stands: Stand) -> Occurrence:
    state, reason = odds.of("state", stands, st.sampled_from(RESTS))
    least = 1 if state is State.PROCESSING else 0
    attempts = max(least, odds.draw(st.sampled_from([0, 0, 0, 1, 2, 5, 60])))
    created = odds.draw(st.sampled_from([1, T - MINUTE, T]))
    origin = odds.draw(st.sampled_from([*["schedule"] * 6, "run:1", "run:1", BACKFILL]))
    own = odds.of("policies", policies, POLICIES)
    return Occurrence(
        "ann",
        "k",
        "* * * * *",
        None,
        T,
        fence=odds.draw(st.integers(1, 2)),
        origin=origin,
        id=f"{GIVEN} 0",
        flow=odds.of("flow", "flow", st.just("")),
        state=state,
        reason=reason,
        due_at=T,
        attempts=attempts,
        lease_until=odds.of("lease", T + MINUTE, LEASES),
        redefined_at=odds.of("date", 5, st.sampled_from([0, 0, 6])),
        policies=beside(own) if origin == BACKFILL else own,
        error="it snowed" if attempts > 1 else None,
        created_at=created,
        begun_at=T - 30_000 if attempts else None,
        updated_at=created,
    )


def _rivals(odds: Oddities, held: Occurrence) -> list[Occurrence]:
    """Draw up to two other occurrences of the schedule. At most one has the place that others
    need.
    """
    found = [held]
    for number in range(1, 1 + odds.of("rivals", 0, st.integers(1, 2))):
        state = odds.draw(RIVALS)
        policies = odds.draw(st.just(held.policies) | POLICIES)
        origin = odds.draw(st.sampled_from([*["schedule"] * 5, BACKFILL]))
        least = 0 if state is State.QUEUED else 1
        one = replace(
            held,
            nominal_at=T - number * MINUTE,
            origin=origin,
            id=f"{GIVEN} {number}",
            state=state,
            reason=None,
            attempts=odds.draw(st.integers(least, 2)),
            due_at=odds.draw(st.sampled_from([T - MINUTE, T, T + 1])),
            lease_until=odds.draw(LEASES),
            error=None,
            policies=beside(policies) if origin == BACKFILL else policies,
        )
        if not (_has_place(one) and any(map(_has_place, found))):
            found.append(one)
    return found[1:]


def _has_place(one: Occurrence) -> bool:
    """Return True if the occurrence has its place alone: the index allows one such."""
    leased = one.state in LEASED
    return leased and may_hold_place(one) and one.policies.overlap is not Overlap.ALLOW


def _asked(odds: Oddities, held: Occurrence, usual: Stand) -> Asked:
    """Return a lease of the occurrence: as it stands or was, as a tick leased it, or by its name
    alone.
    """
    fence = odds.of("fence", held.fence, st.sampled_from([1, 9]))
    asked: Occurrence = replace(held, fence=fence)
    if (held.state, held.reason) != usual and odds.draw(st.booleans()):
        asked = replace(asked, state=usual[0], reason=usual[1])
    if held.state is State.PROCESSING and odds.draw(st.booleans()):
        asked = replace(asked, state=State.QUEUED, attempts=held.attempts - 1, begun_at=None)
    if "asked of another attempt" in odds.odd:
        asked = replace(asked, attempts=asked.attempts + 1)
    if "asked under other policies" in odds.odd:
        asked = replace(asked, policies=odds.draw(POLICIES))
    if "asked by name" in odds.odd:
        flow = odds.draw(st.sampled_from(["flow", "", "other", "other"]))
        return Lease("ann", "k", held.nominal_at, held.origin, flow, fence)
    return asked


@st.composite
def cases(draw: st.DrawFn, stands: Sequence[Stand], odd: frozenset[str] = frozenset()) -> Case:
    """Draw a schedule with an occurrence that mostly stands in one of these ways.

    `odd` parts are odd in any case.
    """
    odds = Oddities(draw, odd | draw(st.frozensets(st.sampled_from(ODD), max_size=3)))
    policies = draw(st.sampled_from([Policies(), RETRIED]) | POLICIES)
    record = None if "no record" in odds.odd else _record(odds, policies)
    usual = draw(st.sampled_from(stands))
    held = _occurrence(odds, policies, usual)
    if record is None:
        held = replace(held, redefined_at=draw(st.sampled_from([0, 0, 5])))
    next_at = odds.of("row", T + MINUTE, st.sampled_from([None, T - MINUTE]))
    there = [] if "absent" in odds.odd else [held]
    standing = Standing(
        record=record,
        row=row_of(record, next_at) if record and next_at else None,
        mark=odds.of("mark", T, st.sampled_from([None, T - MINUTE])),
        defined_at=record.redefined_at if record else 0,
        occurrences=(*there, *_rivals(odds, held)),
    )
    return Case(standing, _asked(odds, held, usual))


def with_hook(case: Case) -> Case:
    """Return the case of a schedule that names a failure hook."""
    standing = case.standing
    told = [replace(one, policies=_telling(one.policies)) for one in standing.occurrences]
    record, row, asked = standing.record, standing.row, case.asked
    return Case(
        replace(
            standing,
            record=record and replace(record, policies=_telling(record.policies)),
            row=row and replace(row, policies=_telling(row.policies)),
            occurrences=tuple(told),
        ),
        replace(asked, policies=_telling(asked.policies))
        if isinstance(asked, Occurrence)
        else asked,
    )


def of_hook(case: Case) -> Case:
    """Return the case in which the question is about a failure hook."""
    told = with_hook(case)
    name = told.asked.identity
    there = [_hook(one) if one.identity == name else one for one in told.standing.occurrences]
    asked = told.asked
    as_hook = _hook(asked) if isinstance(asked, Occurrence) else replace(asked, origin=HOOK)
    return Case(replace(told.standing, occurrences=tuple(there)), as_hook)


def _telling(policies: Policies) -> Policies:
    return replace(policies, on_failure="tell")


def _hook(one: Occurrence) -> Occurrence:
    return replace(one, origin=HOOK, death=DEATH, policies=policies_of_hook(one.policies))
