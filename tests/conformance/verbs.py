"""The verbs that two writers may do to a schedule at once, and the schedules for that."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.ending import set_end
from duetick.domain.errors import DuetickError, StoreUnavailable
from duetick.domain.occurrence import NewOccurrence, Occurrence, ScheduleName
from duetick.domain.operating import Operated, Operator
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.rows import row_of
from duetick.domain.schedule import Pause, Record, Schedule
from duetick.domain.states import LEASED as LEASES
from duetick.domain.states import Reason, State

from tests.conformance.standing import GIVEN, Standing, nameless, nameless_record

Answer: TypeAlias = object
"""The answer of a verb, without names and random ids, so that it can be compared."""

T: Final = 1_700_000_040_000
"""When all of it happens."""

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

OPERATOR: Final = Operator("the operator")
FAILED: Final = Outcome(State.FAILED, Reason.FAILED, "it rained")
REJECTED: Final = Outcome(State.FAILED, Reason.REJECTED, "no such action")


@dataclass(frozen=True, slots=True)
class Hand:
    """A writer who acts on one schedule, and knows it as it was at first."""

    store: Store
    name: ScheduleName
    standing: Standing

    @property
    def record(self) -> Record:
        """The record at first."""
        assert self.standing.record
        return replace(self.standing.record, user_id=self.name[0], key=self.name[1])

    def put(self, wanted: Schedule) -> Record:
        return self.store.schedules.put(wanted, now=T)

    def put_policies(self) -> Record:
        """Let its occurrences overlap, or no more."""
        policies = self.record.policies
        other = Overlap.ALLOW if policies.overlap is Overlap.SKIP else Overlap.SKIP
        return self.put(replace(self.record, policies=replace(policies, overlap=other)))

    def put_limit(self) -> Record:
        """Let it run once more, or once in all."""
        limited = replace(self.record.policies, max_runs=self.record.runs + 1)
        return self.put(replace(self.record, policies=limited))

    def take_hook(self) -> Record:
        """Take its failure hook away."""
        return self.put(replace(self.record, policies=replace(TELLING, on_failure=None)))

    def held(self, number: int) -> Occurrence:
        """Return the occurrence of that number, as it was at first."""
        ids = {one.id: one for one in self.standing.occurrences}
        return replace(ids[f"{GIVEN} {number}"], user_id=self.name[0], key=self.name[1])

    def bring(self, origin: str) -> object:
        record = self.record
        asked = NewOccurrence(
            *self.name,
            record.cron,
            record.timezone,
            T,
            origin,
            T,
            "flow",
            record.redefined_at,
            record.policies,
        )
        return self.store.ledger.bring(asked, now=T)

    def hold_back(self, number: int) -> object:
        """Put one off that a limit keeps from its begin."""
        held = self.held(number)
        return self.store.shelf.change(
            *self.name, T, lambda book: book.hold_back(held, T), about=held
        )

    def does(self, verb: str) -> Answer:
        """Do a verb. Return the answer, or the name of the refusal."""
        try:
            return _bare(VERBS[verb](self))
        except StoreUnavailable:
            raise
        except DuetickError as refusal:
            return type(refusal).__name__


LEASED, LEASED_TOO, RUNNING, WAITING, LEASED_AGAIN, DIED = range(1, 7)
"""The occurrences of a scene, by how many minutes ago they were: claimed and never begun, another
one, under way, a retry that is due, a retry that is leased, one that is dead.
"""

VERBS: Final[dict[str, Callable[[Hand], object]]] = {
    "put timing": lambda hand: hand.put(replace(hand.record, cron="*/7 * * * *")),
    "put policies": Hand.put_policies,
    "put limit": Hand.put_limit,
    "take the hook": Hand.take_hook,
    "purge": lambda hand: hand.store.schedules.purge(*hand.name, now=T),
    "pause": lambda hand: hand.put(pause(hand.record, "away", None, T)),
    "pause until": lambda hand: hand.put(pause(hand.record, "away", T + HOUR, T)),
    "resume": lambda hand: hand.put(resume(hand.record)),
    "delete": lambda hand: hand.store.schedules.delete(*hand.name, now=T),
    "begin": lambda hand: hand.store.ledger.begin(hand.held(LEASED), now=T),
    "begin another": lambda hand: hand.store.ledger.begin(hand.held(LEASED_TOO), now=T),
    "begin retry": lambda hand: hand.store.ledger.begin(hand.held(LEASED_AGAIN), now=T),
    "settle": lambda hand: hand.store.ledger.settle(hand.held(RUNNING), SUCCEEDED, now=T),
    "fail": lambda hand: hand.store.ledger.settle(hand.held(RUNNING), FAILED, now=T),
    "reject": lambda hand: hand.store.ledger.settle(hand.held(RUNNING), REJECTED, now=T),
    "release": lambda hand: hand.store.ledger.release(hand.held(LEASED), now=T),
    "renew": lambda hand: hand.store.ledger.renew(hand.held(RUNNING), now=T),
    "bring": lambda hand: hand.bring("call:1"),
    "bring its time": lambda hand: hand.bring("schedule"),
    "pass over": lambda hand: hand.store.pass_over(*hand.name, T, now=T),
    "write off": lambda hand: hand.store.ledger.write_off(hand.held(LEASED), now=T),
    "retry": lambda hand: hand.store.ledger.retry(hand.held(DIED), OPERATOR, now=T),
    "discard": lambda hand: hand.store.ledger.discard(hand.held(DIED), OPERATOR, now=T),
    "cancel": lambda hand: hand.store.ledger.cancel(hand.held(RUNNING), OPERATOR, now=T),
    "cancel leased": lambda hand: hand.store.ledger.cancel(hand.held(LEASED), OPERATOR, now=T),
    "hold back": lambda hand: hand.hold_back(LEASED),
    "hold back retry": lambda hand: hand.hold_back(LEASED_AGAIN),
    "lease": lambda hand: hand.store.ledger.claim_waiting(T),
    "claim": lambda hand: hand.store.index.claim_due(T),
}
TICKS: Final = frozenset({"lease", "claim"})
"""They wait for nobody: of what another one holds they take nothing, and a later tick comes."""


def _bare(answer: object) -> Answer:
    match answer:
        case Begun(occurrence, record):
            return *nameless([occurrence]), _strip(record)
        case Operated(occurrence, changed):
            return *nameless([occurrence]), changed
        case Occurrence():
            return nameless([answer])
        case Record():
            return _strip(answer)
        case list():
            return nameless(sorted(answer, key=lambda one: one.nominal_at))
        case _:
            return answer


def _strip(record: Record | None) -> Record | None:
    """Return the record of an answer without `last_run_at`, which decides nothing."""
    return nameless_record(replace(record, last_run_at=None)) if record else None


@dataclass(frozen=True, slots=True)
class Scene:
    """A schedule, and the acts that may come at once."""

    standing: Standing
    verbs: tuple[str, ...]


def _record(policies: Policies) -> Record:
    return Record(
        "ann",
        "k",
        "* * * * *",
        "flow",
        "act",
        policies=policies,
        labels={"team": "one"},
        version=1,
        redefined_at=T - HOUR,
        anchor=T - HOUR,
        created_at=T - HOUR,
        updated_at=T - HOUR,
    )


def _occurrence(number: int, policies: Policies) -> Occurrence:
    state, attempts = {
        LEASED: (State.QUEUED, 0),
        LEASED_TOO: (State.QUEUED, 0),
        RUNNING: (State.PROCESSING, 1),
        WAITING: (State.RETRYING, 1),
        LEASED_AGAIN: (State.QUEUED, 1),
        DIED: (State.DEAD, 1),
    }[number]
    at = T - number * MINUTE
    return Occurrence(
        "ann",
        "k",
        "* * * * *",
        None,
        at,
        fence=1,
        id=f"{GIVEN} {number}",
        flow="flow",
        state=state,
        reason=Reason.FAILED if state is State.DEAD else None,
        due_at=at,
        attempts=attempts,
        lease_until=T + MINUTE if state in LEASES else None,
        redefined_at=T - HOUR,
        policies=policies,
        labels={"team": "one"} if attempts else {},
        created_at=at,
        begun_at=T - 100 * SECOND if attempts else None,
        updated_at=at,
    )


def _done(record: Record) -> Record:
    return set_end(record, fires_again=False, at=T - MINUTE)


def _standing(record: Record, *numbers: int) -> Standing:
    due = record.enabled and record.done_at is None
    occurrences = [_occurrence(number, record.policies) for number in numbers]
    begun = [one.begun_at for one in occurrences if one.begun_at]
    return Standing(
        record=replace(record, last_run_at=max(begun, default=None)),
        row=row_of(record, T) if due else None,
        mark=T - MINUTE,
        defined_at=record.redefined_at,
        occurrences=tuple(occurrences),
    )


RETRIED: Final = Policies(delivery=Delivery.AT_LEAST_ONCE)
SHARED: Final = replace(RETRIED, overlap=Overlap.ALLOW)
ONCE: Final = replace(SHARED, max_runs=1)
TELLING: Final = Policies(overlap=Overlap.ALLOW, on_failure="tell")
LAST: Final = replace(SHARED, ends_at=T, after_completion="delete")
PAUSED: Final = replace(_record(RETRIED), enabled=False, pause=Pause(T - HOUR, "away"))

SCENES: Final = {
    "shared": Scene(
        _standing(_record(SHARED), LEASED, RUNNING, WAITING),
        (
            *("put timing", "put policies", "pause", "pause until", "delete"),
            *("begin", "settle", "fail", "release", "renew"),
            *("bring", "bring its time", "lease", "claim", "pass over", "write off", "hold back"),
        ),
    ),
    "taken": Scene(
        _standing(_record(RETRIED), LEASED, RUNNING, WAITING),
        ("put policies", "delete", "begin", "settle", "fail", "release", "lease"),
    ),
    "free": Scene(
        _standing(_record(RETRIED), LEASED, LEASED_TOO),
        ("put policies", "put limit", "begin", "begin another", "release", "bring", "claim"),
    ),
    "again": Scene(
        _standing(_record(RETRIED), LEASED, LEASED_AGAIN, WAITING),
        (
            *("put policies", "pause", "delete", "begin", "begin retry", "lease"),
            *("hold back", "hold back retry"),
        ),
    ),
    "limited": Scene(
        _standing(_record(ONCE), LEASED, LEASED_TOO),
        ("put timing", "pause", "begin", "begin another", "claim"),
    ),
    "used up": Scene(
        _standing(_done(replace(_record(ONCE), runs=1)), LEASED, RUNNING),
        ("put timing", "put limit", "pause", "delete", "purge", "begin", "fail", "reject"),
    ),
    "last": Scene(
        _standing(_record(LAST), LEASED_TOO),
        ("put timing", "put limit", "pause", "delete", "purge", "begin another", "claim"),
    ),
    "done": Scene(
        _standing(_done(_record(LAST)), RUNNING),
        ("put timing", "put policies", "pause", "delete", "purge", "settle", "fail", "reject"),
    ),
    "died": Scene(
        _standing(_record(RETRIED), LEASED, RUNNING, DIED),
        ("retry", "discard", "cancel", "settle", "fail", "delete", "put policies", "lease"),
    ),
    "died, and free": Scene(
        _standing(_record(RETRIED), LEASED, DIED),
        ("retry", "discard", "cancel leased", "begin", "pause", "release", "lease", "claim"),
    ),
    "tells": Scene(
        _standing(_record(TELLING), LEASED, RUNNING),
        ("put policies", "take the hook", "pause", "delete", "fail", "reject", "release", "lease"),
    ),
    "paused": Scene(
        _standing(PAUSED, LEASED_AGAIN, WAITING),
        ("put policies", "resume", "delete", "begin retry", "lease"),
    ),
    "paused meanwhile": Scene(
        _standing(PAUSED, RUNNING, WAITING),
        ("put policies", "resume", "delete", "settle", "fail", "lease"),
    ),
}
