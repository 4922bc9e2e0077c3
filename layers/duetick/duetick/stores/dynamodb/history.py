"""Pages of occurrences: the history, merged with the occurrences in schedules' items."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from duetick.core.ids import read_time_of_id
from duetick.domain.identity import is_job
from duetick.domain.occurrence import LATEST, Identity, Occurrence, ScheduleName
from duetick.domain.paging import newest_first
from duetick.domain.policies import DAY
from duetick.domain.states import LEASED, WAITING, State
from duetick.domain.transitions import is_waiting_job
from duetick.ports import DueJob, Query
from duetick.stores.dynamodb.books import Books
from duetick.stores.dynamodb.items import BookItem, item_key, job_statuses, name_of
from duetick.stores.dynamodb.journal import Journal
from duetick.stores.dynamodb.occurrences import (
    history_partition,
    history_sort,
    read_history,
    slot_of,
    text,
)
from duetick.stores.dynamodb.schema import ATTENTION
from duetick.stores.dynamodb.table import Item, key_of

AT_ONCE: Final = 500
MOST_NAMED: Final = 2_000
"""The most occurrences of a kind that are looked at for an id."""


class History:
    """The pages of one table. Items are read before the history: so no occurrence is missed that
    moves from its item to the history in between.
    """

    def __init__(self, books: Books, journal: Journal) -> None:
        self._books = books
        self._journal = journal

    def find(self, query: Query) -> Sequence[Occurrence]:
        """See `ports.Shelf`."""
        page = PageWanted(query.after, query.states, query.limit)
        if query.user_id is None:
            is_dead = State.DEAD in query.states
            found = self._dead(page) if is_dead else self._under_way(page)
        elif query.key is None:
            found = self._of_user(query.user_id, page)
        else:
            found = self._of_schedule(self._books.load(query.user_id, query.key), page)
        return page.of(found)

    def find_by_id(self, name: str) -> Occurrence | None:
        """Return the occurrence of an id: one that is under way, or dead.

        At most `MOST_NAMED` of each are looked at. An id begins with its time, and an occurrence is
        made about its nominal time: so the dead are looked at backwards from a day later on, and
        then from the newest.
        """
        made = read_time_of_id(name)
        until = LATEST if made is None else made + DAY * 1_000
        sources = (
            (one for chunk in self._chunks_under_way() for one in chunk),
            self._dead_of_items("open", AT_ONCE),
            self._dead_of_items("poisoned", AT_ONCE),
            self._dead_in_history(until, AT_ONCE),
            self._dead_in_history(LATEST, AT_ONCE),
        )
        looked_at = (one for source in sources for one in islice(source, MOST_NAMED))
        return next((one for one in looked_at if one.id == name), None)

    def _of_schedule(self, item: BookItem, page: "PageWanted") -> list[Occurrence]:
        in_item = [entry.occurrence for entry in item.open.values()]
        if page.states and page.states <= WAITING | LEASED:
            return in_item
        if in_item and is_job(item.name[1]) and item.book.record:
            return in_item  # all of a job is in its item until it is purged
        past = self._books.table.query(
            "p = :p AND s < :s",
            {
                ":p": text(history_partition(*item.name)),
                ":s": text(history_sort(page.until)),
            },
            forward=False,
            page=page.limit,
        )
        ended = (read_history(found).occurrence for found in past)
        return in_item + page.read(one for one in ended if slot_of(one) not in item.open)

    def _of_user(self, user_id: str, page: "PageWanted") -> list[Occurrence]:
        """Read all of a user's schedules: they are few. Recently deleted ones are among them."""
        partition, _ = item_key(user_id, "")
        items = self._books.table.query("p = :p", {":p": text(partition)})
        found: list[Occurrence] = []
        for item in [self._books.read(item) for item in items]:
            found += self._of_schedule(item, page)
        return found

    def _dead(self, page: "PageWanted") -> list[Occurrence]:
        """Return dead occurrences, poisoned ones among them, from items and from the history."""
        in_items = [*self._dead_in_items("open", page), *self._dead_in_items("poisoned", page)]
        return in_items + page.read(self._dead_in_history(page.until, page.limit))

    def _dead_in_items(self, kind: str, page: "PageWanted") -> list[Occurrence]:
        """Read items in the order of their newest dead: later items have no newer ones."""
        found: list[Occurrence] = []
        for reached, every in self._items(kind, page.limit):
            found += filter(page.wants, every)
            if sum(one.nominal_at > reached for one in found) >= page.limit:
                break
        return found

    def _dead_of_items(self, kind: str, at_once: int) -> Iterator[Occurrence]:
        chunks = (every for _, every in self._items(kind, at_once))
        return (one for every in chunks for one in every if one.state is State.DEAD)

    def _items(self, kind: str, at_once: int) -> Iterator[tuple[int, list[Occurrence]]]:
        """Yield the occurrences of items, a chunk at a time, each with the newest dead of its last
        item.
        """
        items = self._attention(kind)
        while chunk := list(islice(items, at_once)):
            books = self._books.load_many([name_of(item) for item in chunk]).values()
            every = [entry.occurrence for item in books for entry in item.open.values()]
            yield int(chunk[-1]["aat"]["N"]), every

    def _dead_in_history(self, until: int, at_once: int) -> Iterator[Occurrence]:
        """Yield the dead occurrences of the history, the newest first.

        If the item has one of that name, the history's is out of date: it was retried since.
        """
        found = self._attention("dead", until)
        while keys := [key_of(item) for item in islice(found, at_once)]:
            items = self._books.table.get_many(keys)
            dead = [read_history(item).occurrence for item in items.values()]
            books = self._books.load_many((one.user_id, one.key) for one in dead)
            yield from sorted((one for one in dead if not _is_in_item(one, books)), key=_order)

    def _attention(self, kind: str, before: int = LATEST) -> Iterator[Item]:
        return self._books.table.query(
            "att = :a AND aat < :b",
            {":a": text(kind), ":b": {"N": str(before)}},
            index=ATTENTION,
            forward=False,
        )

    def count_under_way(
        self, now: int, limit: int
    ) -> tuple[Counter[State], Sequence[DueJob], bool]:
        """Count the occurrences under way of up to `limit` schedules, by state. Return the jobs
        among them that are due and wait, and True if there may be others.
        """
        found, due = Counter[State](), list[DueJob]()
        names = islice(self.names_under_way(), limit)
        looked_at = 0
        while chunk := list(islice(names, AT_ONCE)):
            looked_at += len(chunk)
            books = self._books.load_many(chunk).values()
            found.update(one.state for item in books for one in item.under_way)
            due += (job for item in books for job in _due_jobs(item, now))
        return found, due, looked_at >= limit

    def names_under_way(self) -> Iterator[ScheduleName]:
        """Yield the schedules and jobs under way, each once."""
        lines = (line for note in self._journal.all() for line in note.lines)
        names = chain(((line.user_id, line.key) for line in lines), self._names_of_jobs())
        seen: set[ScheduleName] = set()
        for name in names:
            if name not in seen:
                seen.add(name)
                yield name

    def _names_of_jobs(self) -> Iterator[ScheduleName]:
        """Yield the names of jobs that wait in the index: no note covers them."""
        for shards in self._books.layout.jobs():
            for status in job_statuses(shards):
                yield from (name for _, name in self._books.due_in(status, LATEST, AT_ONCE))

    def _under_way(self, page: "PageWanted") -> Sequence[Occurrence]:
        """Find occurrences under way through the journal. Memory has at most one page and one chunk
        of schedules.
        """
        found: Sequence[Occurrence] = ()
        for under_way in self._chunks_under_way():
            found = page.of([*found, *under_way])
        return found

    def _chunks_under_way(self) -> Iterator[list[Occurrence]]:
        """Yield the occurrences under way, some schedules at a time: a note of the journal covers
        each.

        A note has the time at which to read a schedule, and no reason: a line covers leased and
        waiting occurrences alike. To tell them apart, each begin would have to write a new note, or
        each item an attribute of an index. Every fire would pay for that, so an operator's query
        reads more instead.
        """
        names = self.names_under_way()
        while chunk := list(islice(names, AT_ONCE)):
            books = self._books.load_many(chunk).values()
            yield [one for item in books for one in item.under_way]


class PageWanted(NamedTuple):
    """A page: the first `limit` occurrences after an identity, in some states or in any."""

    after: Identity
    states: frozenset[State]
    limit: int

    @property
    def until(self) -> int:
        """A time later than all of the page."""
        return self.after[2] + 1

    def read(self, found: Iterator[Occurrence]) -> list[Occurrence]:
        """Read from one source the occurrences that may be on the page.

        All occurrences of the last time are read, because the order within it is another.
        """
        taken: list[Occurrence] = []
        for one in found:
            if len(taken) >= self.limit and one.nominal_at < taken[-1].nominal_at:
                break
            if self.wants(one):
                taken.append(one)
        return taken

    def of(self, found: Iterable[Occurrence]) -> Sequence[Occurrence]:
        """Return the page. Of two with one identity the first counts: the one in the item."""
        once: dict[Identity, Occurrence] = {}
        for one in found:
            once.setdefault(one.identity, one)
        return sorted(filter(self.wants, once.values()), key=_order)[: self.limit]

    def wants(self, one: Occurrence) -> bool:
        """Return True if the occurrence may be on the page."""
        later = newest_first(one.identity) > newest_first(self.after)
        return later and (not self.states or one.state in self.states)


def _due_jobs(item: BookItem, now: int) -> Iterator[DueJob]:
    for one in item.under_way:
        if is_waiting_job(one) and one.due_at <= now:
            yield DueJob(one.user_id, one.flow, item.action_of(one), one.due_at)


def _is_in_item(one: Occurrence, books: Mapping[ScheduleName, BookItem]) -> bool:
    item = books.get((one.user_id, one.key))
    return item is not None and slot_of(one) in item.open


def _order(one: Occurrence) -> tuple[int, str, str, str]:
    return newest_first(one.identity)
