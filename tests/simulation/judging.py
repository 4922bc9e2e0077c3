"""The judgement of a simulation once all is quiet: it finds the flaws."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise, zip_longest
from typing import Final

from duetick.core.explain import explain
from duetick.core.standing import FRESH_MS
from duetick.core.verify import verify
from duetick.domain.backfilling import KIND, Backfill, id_of, origin_of
from duetick.domain.firing import Times
from duetick.domain.group_pauses import Pauses
from duetick.domain.identity import is_job, stands_beside
from duetick.domain.jobs import KEY_KEPT_MS
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.pausing import resume
from duetick.domain.policies import Delivery
from duetick.domain.rows import row_of
from duetick.domain.schedule import Record
from duetick.domain.standing import StandingOrder
from duetick.domain.states import Reason, State, end_state
from duetick.domain.transitions import has_ended
from duetick.testing.conformance.samples import DAY, MINUTE

from tests.simulation.witness import STILL, Definition, clock, spell
from tests.simulation.world import World

BEHIND: Final = 20 * MINUTE
"""How long after a change its old times may still be claimed: ahead, by a clock that is ahead, or
while the change stood still between its clock and its write.
"""

UNTRUE: Final = frozenset({"fired", "failed", "lost", "running", "unaccounted", "unindexed"})
"""What explain must not say of a time that the ledger does not have."""

ENDED_BY_SOMEBODY = frozenset({Reason.SCHEDULE_DELETED, Reason.DISABLED, Reason.OPERATOR})
"""The only reasons that may cancel what has begun once (T-04)."""


def flaws_of(world: World) -> list[str]:
    """Return all that is wrong, each as a sentence; none if all is well."""
    store, now = world.store, world.slots.now
    ledger = ledger_of(world)
    found = [*world.witness.flaws, *_unexpected(world)]
    written = world.ground.written()
    for user in world.witness.erased:
        found += _flaws_of_erasure(world, user)
        written = Counter({one: n for one, n in written.items() if not one.startswith(f"{user}/")})
    for one in ledger:
        found += _flaws_of_promise(world, one, written[spell(one.identity)])
        found += _flaws_of_end(one, world.quiet_since)
    found += _flaws_of_effects(written, ledger)
    found += _flaws_of_limits(world, ledger)
    found += _flaws_of_hooks(world, ledger)
    found += _flaws_of_jobs(world, ledger)
    for order in world.store.shelf.orders(KIND, 0):
        found += _flaws_of_backfill(order, ledger)
    found += _flaws_of_pauses(world)
    found += _flaws_of_new_rules(world, ledger)
    found += [f"I-16: check finds {one}" for one in store.check(now=now)]
    found += [f"A-02: verify finds {one}" for _, one in verify(store, 0, now, now=now).faults]
    dated, pauses = world.witness.definitions, store.pauses.since(0)
    found += accounts_for_everything(ledger, dated, pauses, now, world.witness.reached)
    known = {one.identity for one in ledger}
    left = [identity for identity in world.witness.ended if identity not in known]
    found += [f"J-10: {spell(one)} is gone, and its time was not over" for one in left]
    return found


def ledger_of(world: World) -> list[Occurrence]:
    """Return every occurrence of the story's schedules, also those that a purge deleted."""
    find = world.store.ledger.find
    there = [one for user, key in world.names for one in find(user, key, limit=100_000)]
    names = {one.identity for one in there}
    return [*there, *(one for name, one in world.witness.aged.items() if name not in names)]


def _unexpected(world: World) -> Iterator[str]:
    for task in world.slots.failed:
        yield f"{task.name} raised {type(task.error).__name__}: {task.error}"


def _flaws_of_promise(world: World, one: Occurrence, written: int) -> Iterator[str]:
    """Compare the runs of an action with the promise of its schedule."""
    entered = len(world.witness.entered.get(one.identity, ()))
    done = world.witness.done[one.identity]
    name = spell(one.identity)
    if entered > one.attempts:
        yield f"J-13: {name} ran {entered} times, and the ledger has {one.attempts} attempts"
    if one.state is State.SUCCEEDED and done + written < 1:
        yield f"T-04: {name} succeeded, and its work was never done"
    if one.attempts == 0 and entered:
        yield f"J-13: {name} is {one.state} and never began, and its action ran"


def _flaws_of_end(one: Occurrence, quiet_since: int) -> Iterator[str]:
    """Look at the end of an occurrence: it must have ended, and rightly."""
    name = spell(one.identity)
    if not has_ended(one) and one.created_at > quiet_since:
        return
    if not has_ended(one):
        yield f"it waits for ever: {name} is {one.state}, due {clock(one.due_at)}"
    elif one.state is State.SUCCEEDED and not one.attempts:
        yield f"J-13: {name} succeeded without an attempt"
    elif one.state is State.CANCELLED and one.attempts and one.reason not in _may_cancel(one):
        yield f"D-08: {name} had begun, and was cancelled: {one.reason}"
    elif _died_too_early(one):
        yield f"T-04: {name} is dead ({one.reason}) after {one.attempts} attempts"


def _may_cancel(one: Occurrence) -> frozenset[Reason]:
    """Return the reasons that may cancel an occurrence that has begun once. A failure hook may be
    taken away.
    """
    taken_away = {Reason.SUPERSEDED} if one.origin.startswith("failure:") else set()
    return ENDED_BY_SOMEBODY | taken_away


def _died_too_early(one: Occurrence) -> bool:
    retry = one.policies.retry
    if one.policies.delivery is Delivery.AT_MOST_ONCE or one.state is not State.DEAD:
        return False
    if one.reason is Reason.LOST:
        return 0 < one.attempts < retry.attempts
    return one.reason is Reason.FAILED and retry.delay(one.attempts) is not None


def _flaws_of_effects(written: Counter[str], ledger: Sequence[Occurrence]) -> Iterator[str]:
    """Compare the effects that were committed with the states (effectively once)."""
    for one in ledger:
        count = written.pop(spell(one.identity), 0)
        wanted = end_state(one.state, one.reason) is State.SUCCEEDED
        was_booked = one.policies.delivery is Delivery.EFFECTIVELY_ONCE
        if count > 1 or (count and not wanted) or (was_booked and wanted and not count):
            yield f"T-04: {spell(one.identity)} is {one.state}, and has {count} effects"
    for name, count in written.items():
        yield f"T-04: {name} has {count} effects, and the ledger does not know it"


def _flaws_of_limits(world: World, ledger: Sequence[Occurrence]) -> Iterator[str]:
    """Compare the runs of each schedule with the begins in the ledger."""
    begun: Counter[ScheduleName] = Counter()
    for one in ledger:
        given_back = one.attempts == 1 and one.reason is Reason.REJECTED
        counts = one.attempts > 0 and not given_back and not stands_beside(one.origin)
        begun[one.user_id, one.key] += counts
    for name in world.names:
        record = world.peek(*name).record
        if record is None or name in world.witness.deleted:
            continue
        if record.runs != begun[name]:
            yield f"T-04: {record.key} counts {record.runs} runs, and {begun[name]} have begun"


def _flaws_of_hooks(world: World, ledger: Sequence[Occurrence]) -> Iterator[str]:
    """Compare the deaths that were seen with the failure hooks: each has one, and no other is
    there. A process may die after it wrote a death, and before anybody saw that.
    """
    for one in ledger:
        world.witness.saw_death(one)
    hooks = {one.identity: one for one in ledger if one.origin.startswith("failure:")}
    deaths = world.witness.deaths
    for name, dead in deaths.items():
        if name not in hooks:
            yield f"T-04: {spell(dead.identity)} is dead ({dead.reason}), and nobody is told"
    for name, hook in hooks.items():
        death = hook.death
        if name not in deaths:
            yield f"T-04: {spell(name)} tells of no death"
        elif death and (death.occurrence, death.reason) != (deaths[name].id, deaths[name].reason):
            yield f"T-04: {spell(name)} tells of another death than its own: {death}"
        if hook.reason in (Reason.OVERLAP, Reason.QUOTA, Reason.PAUSED, Reason.DISABLED):
            yield f"T-04: {spell(name)} was cancelled: {hook.reason}"


def _flaws_of_jobs(world: World, ledger: Sequence[Occurrence]) -> Iterator[str]:
    """Look for each job that was made: it is there, its key made no other within a day, and its
    record says whether it has ended.
    """
    there, made = {one.identity for one in ledger}, world.witness.jobs
    mine = {name: key for name, key in made.items() if name[0] not in world.witness.erased}
    yield from (f"K-01: {spell(name)} was made, and is gone" for name in mine.keys() - there)
    by_key: dict[tuple[str, str, str], list[Occurrence]] = {}
    for one in ledger:
        if mine.get(one.identity) is not None:
            named = one.user_id, one.flow, str(mine[one.identity])
            by_key.setdefault(named, []).append(one)
    for (_, _, key), found in by_key.items():
        times = sorted(one.created_at for one in found)
        if any(later - one < KEY_KEPT_MS - BEHIND for one, later in pairwise(times)):
            yield f"K-02: {key} made {len(found)} jobs within a day"
    for user, key in filter(lambda name: is_job(name[1]), world.names):
        job = world.store.shelf.change(user, key, world.slots.now, lambda book: book.job())
        if job and job.is_pending == (job.record.done_at is not None):
            yield f"K-01: {key} is {job.occurrence.state}, and its record says otherwise"


def _flaws_of_backfill(order: StandingOrder, ledger: Sequence[Occurrence]) -> Iterator[str]:
    """Look at a backfill: it has ended, and each of its times was brought, or had been before."""
    one, origin = Backfill.load(order), origin_of(order)
    mine = {each.nominal_at: each for each in ledger if each.origin == origin}
    name = f"the backfill {id_of(order)} of {one.user_id}/{one.key}"
    if order.ended_at is None:
        yield f"O-04: {name} never ends: it is {one.phase}, and waits for {one.waits_for}"
        return
    times = one.times.between(one.since - 1, one.until - 1)
    yield from (f"A-03: {name} has {clock(at)}" for at in mine.keys() - set(times))
    if one.brought != len(mine):
        yield f"A-03: {name} counts {one.brought}, and has {len(mine)}"
    if one.succeeded + one.failed + one.cancelled != len(mine):
        yield f"A-03: {name} has {len(mine)}, and does not know how each has ended"
    if one.phase != "done":
        return
    there = {each.nominal_at for each in ledger if _was_there(each, one)}
    for at in times:
        if at not in mine and not (one.only_missing and at in there):
            yield f"A-03: {name} has left out {clock(at)}"


def _was_there(other: Occurrence, one: Backfill) -> bool:
    """Return True if the backfill may have passed over its time: it had fired, or was under way."""
    return (other.user_id, other.key) == (one.user_id, one.key) and other.range_end is None


def _flaws_of_pauses(world: World) -> Iterator[str]:
    """Look for begins in a pause of a group that its host must have known.

    If clocks differ, that cannot be judged. The process that pauses may stand still between clock
    and write: nobody knows the pause before the write.
    """
    if world.story.skews != (0,):
        return
    pauses = world.store.pauses.since(0)
    for one, now in world.witness.begins:
        for pause in pauses.of(one.user_id, one.flow):
            written_at = world.witness.kept[pause.order.name] if pause.order else pause.since
            known_at = written_at + FRESH_MS + STILL * world.story.longest_pause
            if known_at < now and pause.covers(now):
                yield f"O-02: {spell(one.identity)} began at {clock(now)}, paused: {pause.scope}"


def _flaws_of_erasure(world: World, user: str) -> Iterator[str]:
    """Look for data of an erased user."""
    store, shelf = world.store, world.store.shelf
    left: dict[str, Sequence[object]] = {
        "books": [one for one in shelf.every_book() if one.user_id == user],
        "accounts": [one for one in shelf.accounts(0, world.slots.now) if one.user_id == user],
        "occurrences": [
            one for name in world.names if name[0] == user for one in store.ledger.find(*name)
        ],
        "backfills": [one for one in shelf.orders(KIND, 0) if Backfill.load(one).user_id == user],
        "limits": [one for one in store.limits.standing().every if one.scope == f"user:{user}"],
        "pauses": [one for one in store.pauses.since(0).every if one.scope == f"user:{user}"],
    }
    yield from (f"{user} is erased, and has {what}: {some}" for what, some in left.items() if some)


def _flaws_of_new_rules(world: World, ledger: Sequence[Occurrence]) -> Iterator[str]:
    """Explain the first times after new rules of the zones, under the old and the new ones.

    Explain has to agree with the ledger, and to say that the old times are no fire times any more.
    """
    tzdata, store, now = world.tzdata, world.store, world.slots.now
    since = min(tzdata.since or now, now)
    for (user, key), dated in world.witness.definitions.items():
        record = next((one.record for one in reversed(dated) if one.since < since), None)
        if record is None or record.timezone is None:
            continue
        entries = {at: one for one in ledger for at in _own_times(one, user, key)}
        new, old = (_first(record, zone, since, now) for zone in tzdata.zones(record.timezone))
        for at in sorted({*new, *old}):
            said, found = explain(store, user, key, at, now).verdict, entries.get(at)
            if found and has_ended(found) and said not in (found.reason, "unknown"):
                yield f"A-02: explain says {said} of {key} at {clock(at)}, and it is {found.reason}"
            elif not found and said in UNTRUE:
                yield f"A-02: explain says {said} of {key} at {clock(at)}, and it has no entry"


def _own_times(one: Occurrence, user: str, key: str) -> Sequence[int]:
    """Return the times of an occurrence, if it is of that schedule and was due by it."""
    own = (one.user_id, one.key, one.origin) == (user, key, "schedule")
    return _spelled_out(one) if own else ()


def _first(record: Record, zone: str, since: int, now: int) -> list[int]:
    """Return the first times of a schedule after an instant, under a zone's rules."""
    times = replace(_times(record), timezone=zone)
    return list(islice(times.between(since - 1, min(now, since + DAY)), 4))


# What follows judges as `verify` does, from what the witness saw: so it judges verify, too.


def accounts_for_everything(
    ledger: Sequence[Occurrence],
    definitions: Mapping[ScheduleName, Sequence[Definition]],
    pauses: Pauses,
    now: int,
    reached: int,
) -> list[str]:
    """Return each nominal time that has no outcome, or two, and each outcome without a time.

    The definitions say which times are owed. `reached` is the furthest instant of any claim.
    """
    flaws: list[str] = []
    for (user, key), dated in definitions.items():
        found: Counter[int] = Counter()
        for one in ledger:
            if (one.user_id, one.key, one.origin) == (user, key, "schedule"):
                times = _spelled_out(one)
                found.update(times)
                if len(times) != one.count:
                    flaws.append(
                        f"A-01: {spell(one.identity)} says {one.count} times, and has {len(times)}"
                    )
        paused = pauses.of(user, "flow")
        flaws += [
            f"A-01: {key} at {clock(at)}: {why}"
            for at, why in _compare(dated, found, reached, now)
            if found[at] or not any(one.covers(at) for one in paused)
        ]
    return flaws


def _spelled_out(one: Occurrence) -> list[int]:
    """Return the nominal time, or all times of a range."""
    first, last = one.nominal_at, one.range_end
    if last is None:
        return [first]
    return [first, *Times(one.cron, one.timezone, first, one.policies).between(first, last)]


def _compare(
    dated: Sequence[Definition], found: Mapping[int, int], reached: int, now: int
) -> Iterator[tuple[int, str]]:
    owed, named = set[int](), set[int]()
    for this, following in zip_longest(dated, dated[1:]):
        until = following.since if following else min(now, reached)
        if this.record is not None:
            times = _times(this.record)
            named.update(times.between(this.since, until + BEHIND if following else now))
            if this.counts:
                owed.update(times.between(this.since, until))
    for at in sorted(owed | found.keys()):
        count = found.get(at, 0)
        if count > 1:
            yield at, f"it has {count} outcomes"
        elif at in owed and not count:
            yield at, "it has no outcome"
        elif at not in named:
            yield at, "no expression names it"


def _times(record: Record) -> Times:
    return Times.of(row_of(resume(record), 0))
