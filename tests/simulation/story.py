"""A story: everything that a seed decides beforehand. The real code decides the rest.

A story is data, so that a failing one can be told again without a part of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import Schedule
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, SECOND

from tests.conformance.chances import START, Chances

Verb: TypeAlias = Literal[
    "put",
    "retime",
    "other policies",
    "other input",
    "pause",
    "resume",
    "toggle",
    "delete",
    "run",
    "call",
    "lose the row",
    "set the row back",
    "purge",
    "audit",
    "look",
    "break the row",
    "restore the row",
    "backfill",
    "deploy",
    "retry",
    "cancel",
    "discard",
    "pause a group",
    "resume a group",
    "limit",
    "lift a limit",
    "new tzdata",
    "erase",
    "enqueue",
    "cancel a job",
    "move",
]

Kind: TypeAlias = Literal["dies before", "dies after", "is refused", "is not answered"]
"""What happens at a boundary: the process dies there, or the database or network is away."""

Way: TypeAlias = Literal["unreachable", "unanswered", "twice", "again later", "busy"]
"""What the network makes of a delivery."""

PORT: Final = (
    "claim",
    "lease",
    "begin",
    "settle",
    "effects",
    "effects.write",
    "record",
    "records",
    "occurrence",
    "find",
    "find_by_id",
    "events",
    "backlog",
    "look",
    "row",
    "leaving",
    "forget",
    "retire",
    "acquire",
    "unlock",
    "report",
    "tidy",
    "every_book",
    "accounts",
    "note",
    "keep_note",
    "standing",
    "orders",
    "keep_order",
    "unreadable",
    "owner",
    "jobs",
    "key_holder",
    "creation",
    "count",
    "standing",
    "orders",
    "keep_order",
    "Ledger.bring",
    "Ledger.backfill",
    "Ledger._begin_generally",
    "Ledger._conclude",
    "Ledger.release",
    "Ledger.renew",
    "Ledger.retry",
    "Ledger.cancel",
    "Ledger.discard",
    "Schedules.put",
    "Schedules.delete",
    "Schedules.purge",
    "Store.mend",
    "Jobs._write",
    "Index.upsert",
    "Index.remove",
    "Index.restore",
)
"""The calls of the port. A change of a book has the name of the method that makes it."""

OF_VERBS: Final[Mapping[Verb, tuple[str, ...]]] = {
    "new tzdata": ("Store.follow_zone",),
    "erase": ("erase",),
    "enqueue": ("Jobs._write",),
    "limit": ("BeginWithin.foresee", "BeginWithin.begin", "BeginWithin.hold_back"),
}
"""The boundaries that are crossed in stories with a verb alone: faults fall there with it."""

OF_BELLS: Final = (
    "make_bells_pending",
    "pending_bells",
    "take_bell",
    "end_bell",
    "next_due",
    "Index.claim_one",
    "Ringer.answer",
    "bells.put",
    "bells.delete",
    "bells.names",
)
"""The boundaries that are crossed where bells ring."""

WAY_TO_DISPATCH: Final = ("deliver", "dispatch", "enqueue", "act")
"""The boundaries beside the port: a tick's delivery, a call as dispatch has it, the start of an
invocation for a background action, an action.
"""

WAY_OF_PACKS: Final = ("send", "take")
"""The boundaries of a story through the queue alone: a tick sends a message, dispatch takes it."""

STATIC: Final = "flow/static"
"""The key of the static schedule that a deployment may declare."""

USUAL: Final = (
    *("claim", "begin", "settle", "deliver", "dispatch", "act") * 3,
    *("Ledger.backfill", "keep_order"),
    *(
        "lease",
        "effects",
        "Ledger._begin_generally",
        "Ledger._conclude",
        "Ledger.release",
        "Schedules.put",
    )
    * 2,
)
"""The boundaries that most fires cross: faults fall there more often."""

SPANS: Final = (2 * HOUR, 3 * HOUR, 8 * HOUR, 2 * DAY, 30 * DAY)
DENSE: Final = ("* * * * *", "*/2 * * * *", "1-59/5 * * * *", "*/30 1-3 * * *", "rate(7 minutes)")
HOURLY: Final = ("0 * * * *", "30 2 * * *", "*/30 1-3 * * *", "rate(1 hour)", "15 */3 * * *")
DAILY: Final = (
    *("30 2 * * *", "0 0 * * *", "days(mon 09:00, sat 23:30, sun 02:30)", "rate(1 day)"),
    *("0 9 * * mon-fri", "cron(0 9 ? * MON-FRI *)", "30 1 * * sun", "0 12 1 * *"),
)
CLOCK_CHANGES: Final = tuple(
    START + days * DAY + hours * HOUR
    for days, hours in ((0, 0), (217, -1), (-14, 5), (224, 4), (7, -11), (189, -11), (337, 0))
)
"""Instants about an hour before clocks change, in Berlin, New York and on Lord Howe; a leap day."""


class Act(NamedTuple):
    """An action of somebody at an instant."""

    at: int
    verb: Verb
    key: str
    schedule: Schedule | None = None
    number: int = 0


class Fault(NamedTuple):
    """A fault at the nth crossing of a boundary."""

    boundary: str
    nth: int
    kind: Kind


class Trouble(NamedTuple):
    """The network's trouble with the nth delivery."""

    nth: int
    way: Way


class Outage(NamedTuple):
    """No tick comes, or the database does not answer, from one instant to another."""

    of: Literal["ticks", "database"]
    since: int
    until: int


@dataclass(frozen=True)
class Story:
    """One run of the simulation. `skews` are deviations of clocks, in milliseconds."""

    seed: int
    start: int
    span: int
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    outages: tuple[Outage, ...] = ()
    skews: tuple[int, ...] = (0,)
    look_ahead: int = 0
    slots: int = 8
    chunk: int = 1_000
    longest_pause: int = 40
    by_queue: bool = False

    @property
    def end(self) -> int:
        """The instant from which on all is quiet."""
        return self.start + self.span

    @property
    def keys(self) -> Sequence[str]:
        """The schedules that it names."""
        return sorted({act.key for act in self.acts if act.key})

    @property
    def size(self) -> int:
        """Return the length of the story."""
        return sum(map(len, (self.acts, self.faults, self.troubles, self.outages)))


class Teller(Chances):
    """Makes the story of a seed."""

    def story(self, seed: int, *, inside: bool = False) -> Story:
        """Return the story. With `inside`, processes die between statements of a store, too."""
        self.start = self.choice(CLOCK_CHANGES) + self.randrange(HOUR) // SECOND * SECOND
        self.span = self.choice(SPANS)
        acts = [*self._births(), *self._acts()]
        made = Story(
            seed,
            self.start,
            self.span,
            tuple(sorted(acts, key=lambda act: act.at)),
            faults=tuple(self._faults(inside=inside)),
            troubles=tuple(self._troubles()),
            outages=tuple(self._outages()),
            skews=self.choice(((0,), (0,), (-900, 0, 1_200), (-60_000, 0, 30_000))),
            look_ahead=self.choice((0, 0, 0, 120_000)),
            slots=self.choice((1, 4, 8, 64)),
            chunk=self.choice((1_000, 1_000, 1_000, 2)),
            longest_pause=self.choice((0, 5, 40, 40, 3_000)),
        )
        acts += self._acts_of_operators()
        seldom = self._seldom()
        faults = [*made.faults, *self._faults_of(seldom)]
        limits = self._acts_of_limits()
        jobs = self._acts_of_jobs()
        acts += [*seldom, *limits, *jobs]
        faults += [*self._faults_of(limits), *self._faults_of(jobs)]
        moves = self._moves()
        told = replace(
            made,
            acts=tuple(sorted([*moves, *acts], key=lambda act: act.at)),
            faults=(*faults, *(self._faults_of_bells() if moves else ())),
            look_ahead=0 if moves else made.look_ahead,
        )
        return self._by_queue(told) if not moves and self.happens(0.3) else told

    def _by_queue(self, story: Story) -> Story:
        """Return a story whose ticks hand packs to a queue, drawn last."""
        kinds: tuple[Kind, ...] = ("dies before", "dies after")
        more = [
            Fault(self.choice(WAY_OF_PACKS), self.randrange(1, 20), self.choice(kinds))
            for _ in range(self.choice((0, 1, 3)))
        ]
        faults = (*story.faults, *more)
        return replace(story, faults=faults, look_ahead=120_000, by_queue=True)

    def _moves(self) -> list[Act]:
        """Return the moves of some stories to bells, and back, drawn last.

        There are also edits of one schedule at once, whose processes want its bell.
        """
        if not self.happens(0.2):
            return []
        first = Act(self.start + self.choice((0, 0, self.randrange(1, self.span // 2))), "move", "")
        back = [self._act("move") for _ in range(self.choice((0, 0, 0, 1, 2)))]
        return [first, *back, *self._edits_at_once(), *self._edits_at_once()]

    def _edits_at_once(self) -> list[Act]:
        at, key = self.start + self.randrange(1, self.span), f"k{self.randrange(2)}"
        within = self.choice((200, 4_000))
        return [
            Act(at + self.randrange(within), "retime", key, self._schedule(key)) for _ in range(3)
        ]

    def _faults_of_bells(self) -> list[Fault]:
        names = [one for one in OF_BELLS if self.happens(0.4)]
        kinds: tuple[Kind, ...] = get_args(Kind)
        return [Fault(one, self.randrange(1, 6), self.choice(kinds)) for one in names]

    def _seldom(self) -> list[Act]:
        """Return the acts of few stories, drawn last: the rest of a story stays as it was."""
        found = []
        if self.happens(0.1):
            at = self.start + self.randrange(1, self.span // 2)
            found.append(Act(at, "new tzdata", "", number=self.randrange(10**6)))
        if self.happens(0.08):
            other = replace(self._schedule("n0"), user_id="bob", enabled=True)
            found.append(Act(self.start, "put", "n0", other))
            found.append(self._act("erase"))
        return found

    def _acts_of_limits(self) -> list[Act]:
        """Return the limits of few stories, drawn last, with a crowd that they hold up."""
        if not self.happens(0.15):
            return []
        found = [self._act("limit") for _ in range(self.choice((1, 1, 3)))]
        found += [self._act("lift a limit") for _ in range(self.choice((0, 1)))]
        return [*found, *self._crowd()]

    def _acts_of_jobs(self) -> list[Act]:
        """Return the jobs of some stories, drawn last, and cancels of them."""
        if not self.happens(0.2):
            return []
        found = [self._act("enqueue") for _ in range(self.choice((1, 3, 8)))]
        return [*found, *(self._act("cancel a job") for _ in range(self.choice((0, 0, 1, 2))))]

    def _crowd(self) -> list[Act]:
        """Return more schedules that come due together, so that they want the same places."""
        crons = ("*/2 * * * *", "0 * * * *", "0 9 * * *")
        cron = crons[(self.span > 8 * HOUR) + (self.span > 2 * DAY)]
        one = Schedule("bob", "c", cron, "flow", "mail")
        return [Act(self.start, "put", f"c{n}", replace(one, key=f"c{n}")) for n in range(4)]

    def _faults_of(self, acts: list[Act]) -> list[Fault]:
        places = [name for act in acts for name in OF_VERBS.get(act.verb, ()) if self.happens(0.4)]
        kinds: tuple[Kind, ...] = get_args(Kind)
        return [Fault(name, self.randrange(1, 4), self.choice(kinds)) for name in places]

    def _acts_of_operators(self) -> list[Act]:
        verbs: tuple[Verb, ...] = (*("retry", "cancel") * 3, "discard")
        most = self.choice((0, 2, 6, 12))
        return [self._act(self.choice(verbs)) for _ in range(self.randrange(most + 1))]

    def _births(self) -> list[Act]:
        keys = [f"k{number}" for number in range(self.choice((1, 2, 2, 3)))]
        births = [Act(self.start, "put", key, self._schedule(key)) for key in keys]
        if self.happens(0.2):
            births.append(self._deploy(self.start))
        if self.happens(0.1):
            cron = "0 * * * *" if self.span <= 8 * HOUR else "0 9 * * *"
            mass = Schedule("bob", "m", cron, "flow", "mail")
            births += [
                Act(self.start, "put", f"m{n:02}", replace(mass, key=f"m{n:02}"))
                for n in range(self.choice((10, 30)))
            ]
        return births

    def _schedule(self, key: str) -> Schedule:
        made = self.schedule(key, self.start)
        crons = DENSE if self.span <= 8 * HOUR else HOURLY if self.span <= 2 * DAY else DAILY
        cron = self.choice(crons) if self.happens(0.9) else self.cron(self.start)
        return self.fitting(replace(made, cron=cron, policies=self._policies(), external_id=None))

    def _policies(self) -> Policies:
        """Return policies whose window lies in this story, mostly without an end."""
        made, moved = self.policies(), self.start - START
        starts_at = None if made.starts_at is None else made.starts_at + moved
        ends_at = None if made.ends_at is None else self.start + self.randrange(self.span)
        if ends_at is not None and ends_at < (starts_at or 0):
            ends_at = None
        once = self.happens(0.5)
        limit = self.choice((*(None,) * 9, 1, 2, 4, 12))
        return replace(
            made,
            starts_at=starts_at,
            ends_at=ends_at,
            overlap=Overlap.ALLOW if self.happens(0.3) else made.overlap,
            delivery=Delivery.AT_MOST_ONCE if once and self.happens(0.4) else made.delivery,
            max_runs=limit,
        )

    def fitting(self, wanted: Schedule) -> Schedule:
        """Return the schedule with an action that keeps its promise, seldom with another one."""
        once = wanted.policies.delivery is Delivery.EFFECTIVELY_ONCE
        plain = "later" if self.happens(0.15) else "mail"
        action = "book" if once != self.happens(0.03) else plain
        return replace(wanted, action=action)

    def _acts(self) -> list[Act]:
        most = self.choice((0, 4, 10, 25))
        verbs: tuple[Verb, ...] = (
            *("retime", "pause", "resume", "run", "call", "backfill") * 3,
            *("other policies", "other input", "toggle", "delete", "put") * 2,
            *("lose the row", "set the row back", "purge", "audit", "look"),
            *("pause a group", "pause a group", "resume a group"),
        )
        found = [self._act(self.choice(verbs)) for _ in range(self.randrange(most + 1))]
        if self.happens(0.15):
            found.append(self._deploy(self.start + self.randrange(1, self.span)))
        return found

    def _deploy(self, at: int) -> Act:
        """Return a deployment, mostly with a static schedule. Its action keeps its promise, for no
        flow can be declared otherwise.
        """
        made = self._schedule(STATIC)
        once = made.policies.delivery is Delivery.EFFECTIVELY_ONCE
        action = "book" if once else made.action.replace("book", "mail")
        static = replace(made, user_id="", enabled=True, pause=None, labels={}, action=action)
        return Act(at, "deploy", STATIC, static, self.randrange(10**6))

    def _act(self, verb: Verb) -> Act:
        """Return an act, often near a full minute, where it meets a tick."""
        at = self.start + self.randrange(1, self.span)
        if self.happens(0.6):
            at = at // MINUTE * MINUTE + self.choice((-1, 0, 1, 40, 300, 2_000))
        key = f"k{self.randrange(3)}"
        return Act(at, verb, key, self._schedule(key), self.randrange(10**6))

    def _faults(self, *, inside: bool) -> list[Fault]:
        found = [self._fault() for _ in range(self.choice((0, 1, 3, 6, 10)))]
        if inside:
            found += [self._inside() for _ in range(self.choice((1, 2, 4)))]
        return found

    def _fault(self) -> Fault:
        boundary = self.choice(USUAL if self.happens(0.6) else (*PORT, *WAY_TO_DISPATCH))
        nth = self.choice((1, 2, 3, 5, 8, 13, 21, 34)) + self.randrange(3)
        crash: tuple[Kind, ...] = ("dies before", "dies after")
        away: tuple[Kind, ...] = ("is refused", "is not answered")
        outside = boundary in WAY_TO_DISPATCH or self.happens(0.7)
        return Fault(boundary, nth, self.choice(crash if outside else away))

    def _inside(self) -> Fault:
        nth = int(1.9 ** self.randrange(3, 13)) + self.randrange(40)
        return Fault("statement", nth, self.choice(("dies before", "dies after")))

    def _troubles(self) -> list[Trouble]:
        ways: tuple[Way, ...] = (
            "unreachable",
            "unanswered",
            "twice",
            "twice",
            "again later",
            "busy",
        )
        most = self.choice((0, 2, 6))
        return [Trouble(self.randrange(1, 60), self.choice(ways)) for _ in range(most)]

    def _outages(self) -> list[Outage]:
        found = []
        for of in ("ticks", "database"):
            if self.happens(0.3):
                since = self.start + self.randrange(self.span)
                long = self.choice((3 * MINUTE, 20 * MINUTE, 2 * HOUR, self.span // 4))
                until = since + (long if of == "ticks" else min(long, 20 * MINUTE))
                found.append(Outage("ticks" if of == "ticks" else "database", since, until))
        return found


def story_of(seed: int, *, inside: bool = False) -> Story:
    """Return the story of a seed."""
    return Teller(seed).story(seed, inside=inside)
