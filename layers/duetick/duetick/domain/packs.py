"""Packs: occurrences that are due in the same second, and travel together to dispatch.

A queue carries messages. A message has one pack, or several that follow one another: of a schedule
whose occurrences may not overlap and of which several are late, each pack has one. A late one is
due now.

                 ┌ a share of each user's ──▶ packs of many users, each of a group of its own
  chunk ──▶ add ─┤
                 └ what a user has more ────▶ packs of that user: one group

A message names occurrences and their leases, with the policies that they were leased under. It has
no input, no label and no principal: dispatch reads them as it begins.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

from duetick.domain.errors import ConfigurationError
from duetick.domain.identity import stands_beside
from duetick.domain.occurrence import Lease, Occurrence, ScheduleName
from duetick.domain.policies import Overlap, Policies
from duetick.domain.transitions import came_back

MOST_LEASES: Final = 100
"""The most leases of a message."""

SHARE: Final = 25
"""The most occurrences of one user, of one second, that travel with those of others."""

LARGEST: Final = 60_000
"""The most characters of a message, all of them ASCII: SQS counts each 64 KiB as a request."""

LONGEST_DELAY: Final = 900
"""The longest delay of SQS, in seconds."""

IN_A_ROW: Final = 10
"""The most packs of a message: a lease has no time for more of them, one after another."""

MOST_REMEMBERED: Final = 50_000
"""The most schedules of which a tick knows that a late occurrence was handed on."""

FORMAT: Final = 1


class UnreadableMessage(ValueError):
    """A message that this code cannot read."""


Pack: TypeAlias = tuple[Occurrence, ...]
"""The occurrences of a pack as their tick leased them, without ranges and texts."""


class ReceivedMessage(NamedTuple):
    """The content of a message: its packs, in order, the instant at which they were packed, and the
    tick that packed them.
    """

    packs: tuple[Pack, ...]
    at: int
    tick: str = ""

    def lateness_ms(self, now: int) -> int:
        """Return the time since the first pack could have been taken: its queue is so far
        behind.
        """
        due_at = min((one.due_at for pack in self.packs[:1] for one in pack), default=self.at)
        return max(0, now - max(due_at, self.at))


class OutgoingMessage(NamedTuple):
    """A message that is complete, with the occurrences that it hands on."""

    body: str
    group: str
    due_at: int
    occurrences: tuple[Occurrence, ...]

    def delay(self, now: int) -> int:
        """Return the whole seconds until the first is due, as far as a queue delays."""
        return min(LONGEST_DELAY, max(0, (self.due_at - now) // 1_000))


def read_message(body: str) -> ReceivedMessage:
    """Return the packs of a message. Raises UnreadableMessage if it is none, or newer than this
    code.
    """
    try:
        found = json.loads(body)
        version = found["v"]
        if version != FORMAT:
            raise UnreadableMessage(f"Its format is {version!r:.20}; this code reads {FORMAT}.")
        packs = tuple(tuple(_read(*entry) for entry in pack) for pack in found["packs"])
        return ReceivedMessage(packs, _whole(found["at"]), _text(found["tick"]))
    except UnreadableMessage:
        raise
    except (ValueError, LookupError, TypeError, RecursionError, ConfigurationError) as problem:
        raise UnreadableMessage(f"It is no message: {type(problem).__name__}.") from None


def _read(*entry: object) -> Occurrence:
    """Return the occurrence of an entry. Raises TypeError or ValueError if it is none.

    Fields that a later code adds follow these.
    """
    texts = [_text(entry[place]) for place in (0, 1, 2, 3, 4, 5)]
    numbers = [_whole(entry[place]) for place in range(7, 12)]
    user_id, key, origin, name, flow, cron = texts
    nominal_at, fence, due_at, lease_until, attempts = numbers
    policies = None if entry[12] is None else _text(entry[12])
    lease = Lease(user_id, key, nominal_at, origin, flow=flow, fence=fence)
    return Occurrence(
        lease.user_id,
        lease.key,
        cron,
        None if entry[6] is None else _text(entry[6]),
        lease.nominal_at,
        lease.fence,
        lease.origin,
        name,
        lease.flow,
        due_at=due_at,
        attempts=attempts,
        lease_until=lease_until,
        policies=Policies.load(policies),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value


Written: TypeAlias = tuple[Occurrence, str]
"""An occurrence, and its lease as a message has it."""


def _write(one: Occurrence) -> Written:
    entry = (
        *(one.user_id, one.key, one.origin, one.id, one.flow, one.cron, one.timezone),
        *(one.nominal_at, one.fence, one.due_at, one.lease_until or 0, one.attempts),
        one.policies.dump(),
    )
    return one, json.dumps(entry, separators=(",", ":"))


@dataclass(slots=True)
class _OpenPack:
    """A pack that has room, at most one occurrence of a schedule."""

    found: dict[ScheduleName, Written] = field(default_factory=dict)
    size: int = 0

    def takes(self, written: Written) -> bool:
        """Return True if it has room for an occurrence, and none of its schedule."""
        one, text = written
        fits = self.size + len(text) <= LARGEST or not self.found
        return fits and _name(one) not in self.found

    def add(self, written: Written) -> None:
        """Add an occurrence."""
        self.found[_name(written[0])] = written
        self.size += len(written[1]) + 1

    def in_order(self) -> list[Written]:
        """Return the occurrences by the names of their schedules."""
        return [self.found[name] for name in sorted(self.found)]


@dataclass(slots=True)
class _Second:
    """The open packs of one second by their group, and how many of each user were seen."""

    packs: dict[str, list[_OpenPack]] = field(default_factory=dict)
    users: Counter[str] = field(default_factory=Counter)

    def group(self, user_id: str) -> str:
        """Count an occurrence. Return the group of a user who has a share by now; else none."""
        self.users[user_id] += 1
        return _digest(user_id) if self.users[user_id] > SHARE else ""


class Packer:
    """The packs of one tick, until they are handed on. `held` occurrences are in open packs.

    `behind` are those that cannot travel in this tick, because another one of their schedule does.
    """

    def __init__(self, tick: str) -> None:
        self._tick = tick
        self._seconds: dict[int, _Second] = {}
        self._late: set[ScheduleName] = set()
        self.behind: list[Occurrence] = []
        self.held = 0

    def add(self, claimed: Iterable[Occurrence], now: int) -> Iterator[OutgoingMessage]:
        """Take occurrences in. Yield each message that is full by that."""
        rows: dict[ScheduleName, list[Occurrence]] = {}
        for one in claimed:
            if one.due_at <= now and _is_exclusive(one):
                rows.setdefault(_name(one), []).append(one)
            else:
                yield from self._add(one, now)
        self._leave_behind(rows)
        for row in rows.values():
            if len(row) == 1:
                yield from self._add(row[0], now)
        yield from self._follow([row for row in rows.values() if len(row) > 1], now)

    def take(self, now: int, until: int | None = None) -> Iterator[OutgoingMessage]:
        """Yield the messages of all open packs, or of those that are due by an instant."""
        due = [at for at in self._seconds if until is None or at * 1_000 <= until]
        for at in sorted(due):
            for group, packs in self._seconds.pop(at).packs.items():
                for pack in packs:
                    yield self._close(pack, group, now)

    def _leave_behind(self, rows: dict[ScheduleName, list[Occurrence]]) -> None:
        """Leave behind the late occurrences of a schedule if an earlier chunk had one of that
        schedule.
        """
        for name in [name for name in rows if name in self._late]:
            self.behind += rows.pop(name)
        if len(self._late) < MOST_REMEMBERED:
            self._late.update(rows)

    def _add(self, one: Occurrence, now: int) -> Iterator[OutgoingMessage]:
        second, written = self._second(one, now), _write(one)
        group = second.group(one.user_id)
        packs = second.packs.setdefault(group, [])
        pack = next((each for each in packs if each.takes(written)), None)
        if pack is None:
            pack = _OpenPack()
            packs.append(pack)
        pack.add(written)
        self.held += 1
        if len(pack.found) == MOST_LEASES:
            packs.remove(pack)
            yield self._close(pack, group, now)

    def _second(self, one: Occurrence, now: int) -> _Second:
        return self._seconds.setdefault(max(one.due_at, now) // 1_000, _Second())

    def _close(self, pack: _OpenPack, group: str, now: int) -> OutgoingMessage:
        self.held -= len(pack.found)
        return self._message([pack.in_order()], group, now)

    def _follow(self, rows: Iterable[Sequence[Occurrence]], now: int) -> Iterator[OutgoingMessage]:
        """Yield messages whose packs follow one another: the first of each row, then the second."""
        by_group: dict[str, list[list[Written]]] = {}
        for row in rows:
            first, *_ = ordered = sorted(row, key=_urgency)
            self.behind += ordered[IN_A_ROW:]
            group = self._second(first, now).group(first.user_id)
            by_group.setdefault(group, []).append([_write(one) for one in ordered[:IN_A_ROW]])
        for group, found in by_group.items():
            for together in _fill(found):
                packs = [[one for one in pack if one] for pack in zip_longest(*together)]
                yield self._message(packs, group, now)

    def _message(self, packs: Sequence[Sequence[Written]], group: str, now: int) -> OutgoingMessage:
        """Return a message. Without a group, it has one of its own."""
        texts = ",".join(f"[{','.join(text for _, text in pack)}]" for pack in packs)
        every = tuple(one for pack in packs for one, _ in pack)
        own = group or _digest("\0".join(map(str, every[0].identity)))
        head = f'"v":{FORMAT},"at":{now},"tick":{json.dumps(self._tick)}'
        body = f'{{{head},"packs":[{texts}]}}'
        return OutgoingMessage(body, own, min(one.due_at for one in every), every)


def _fill(rows: Iterable[list[Written]]) -> Iterator[list[list[Written]]]:
    """Yield rows that fit into one message, by the names of their schedules."""
    found: list[list[Written]] = []
    count = size = 0
    for row in sorted(rows, key=lambda row: _name(row[0][0])):
        length = sum(len(text) + 1 for _, text in row)
        if found and (count + len(row) > MOST_LEASES or size + length > LARGEST):
            yield found
            found, count, size = [], 0, 0
        found.append(row)
        count, size = count + len(row), size + length
    if found:
        yield found


def _is_exclusive(one: Occurrence) -> bool:
    """Return True if no other occurrence of the schedule may run beside it."""
    return one.policies.overlap is not Overlap.ALLOW and not stands_beside(one.origin)


def _urgency(one: Occurrence) -> tuple[bool, int, int, int]:
    """Return the sort key of the occurrences of one schedule: the order of a tick's deliveries."""
    return not came_back(one), -one.priority, one.due_at, one.nominal_at


def _name(one: Occurrence) -> ScheduleName:
    return one.user_id, one.key


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
