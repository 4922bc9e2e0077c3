"""The jobs of a store: enqueue, read, list. Their occurrences are the ledger's."""

from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

from duetick.domain.book import Book
from duetick.domain.creation import Repeatable
from duetick.domain.errors import CreationStands
from duetick.domain.identity import is_job, is_job_id, job_key
from duetick.domain.jobs import KEY_KEPT_MS, Job, due_at_of, new_job
from duetick.domain.occurrence import Leased
from duetick.domain.paging import make_cursor, read_key
from duetick.domain.schedule import Schedule
from duetick.ports import Clock, Effects, Shelf, Terms

TRIES: Final = 3


class Enqueued(NamedTuple):
    """A job. If its key had made it before, `made` is False."""

    job: Job
    made: bool


class JobPage(NamedTuple):
    """Some jobs of one user, and the cursor of the next page."""

    jobs: tuple[Job, ...]
    cursor: str | None = None


class Jobs:
    """The jobs of one database."""

    def __init__(self, shelf: Shelf, clock: Clock, new_id: Callable[[], str]) -> None:
        self._shelf = shelf
        self._clock = clock
        self._new_id = new_id

    def enqueue(
        self,
        wanted: Schedule,
        *,
        due_at: int | None = None,
        key: str | None = None,
        at_most: int | None = None,
        leased: bool = False,
        effects: Effects | None = None,
        within: Leased | None = None,
        now: int | None = None,
    ) -> Enqueued:
        """Make a job of a definition, whose key and cron do not count, in one write.

        Within a day, the same `key` of the same user and flow makes nothing more, and returns the
        first job as it is now. More than `at_most` pending jobs raise QuotaReached. With `leased`,
        the caller hands on a job that is due. With `effects`, the job is made by their commit. The
        commit settles the attempt `within`: if a job ends by that, it is not pending.
        """
        at = self._clock() if now is None else now
        due = due_at_of(due_at, at)
        for tried in range(TRIES):
            first = None if effects or key is None else self._find_first(wanted, key, at)
            if first:
                return Enqueued(first, made=False)
            job = new_job(wanted, self._new_id(), due, at, key)
            try:
                return Enqueued(
                    self._write(
                        job,
                        Terms(at_most, _once(job, key, at), ending=_ends(wanted, within)),
                        at,
                        leased=leased and due <= at,
                        effects=effects,
                    ),
                    made=True,
                )
            except CreationStands as stands:
                first = self._read(wanted.user_id, stands.noted, effects, at)
                if first:
                    return Enqueued(first, made=False)
                if tried + 1 == TRIES:
                    raise
        raise AssertionError("a loop of tries returns or raises")

    def _write(
        self, job: Job, terms: Terms, now: int, *, leased: bool, effects: Effects | None
    ) -> Job:
        def alter(book: Book) -> Job:
            return book.enqueue(job, now, leased=leased)

        user_id, key = job.record.user_id, job.record.key
        if effects:
            return effects.change(user_id, key, now, alter, terms)
        return self._shelf.change(user_id, key, now, alter, terms=terms)

    def _find_first(self, wanted: Schedule, key: str, now: int) -> Job | None:
        """Return the job that a key stands for, or None."""
        found = self._shelf.creation(wanted.user_id, _name_of_key(wanted.flow, key), now)
        return self.get(wanted.user_id, found.digest) if found else None

    def get(self, user_id: str, name: str) -> Job | None:
        """Return the job of an id, or None."""
        if not is_job_id(name):
            return None
        return self._read(user_id, name, None, self._clock())

    def _read(self, user_id: str, name: str, effects: Effects | None, now: int) -> Job | None:
        change = effects.change if effects else self._shelf.change
        return change(user_id, job_key(name), now, lambda book: book.job())

    def list(
        self,
        user_id: str,
        *,
        limit: int = 100,
        cursor: str | None = None,
        ended: bool | None = None,
    ) -> JobPage:
        """Return a page of a user's jobs, ordered by id, which begins with the time: all of them,
        those that have ended, or those that are pending.

        If many others stand between, the page may hold few jobs or none, and still have a next one.
        """
        found, after = self._shelf.jobs(user_id, read_key(cursor, of_jobs=True), limit, ended=ended)
        return JobPage(tuple(found), None if after is None else make_cursor(after))


def _ends(wanted: Schedule, within: Leased | None) -> int:
    """Return the number of the user's jobs that end with an attempt: 1 if it is one's."""
    return int(within is not None and is_job(within.origin) and within.user_id == wanted.user_id)


def _once(job: Job, key: str | None, now: int) -> Repeatable | None:
    """Return the creation that a key stands for. The store keeps the job's id of it."""
    if key is None:
        return None
    return Repeatable(_name_of_key(job.record.flow, key), job.id, now + KEY_KEPT_MS)


def _name_of_key(flow: str, key: str) -> str:
    """Return the name of a key in a flow. It has a length that every store takes."""
    digest = sha256(f"{flow}\0{key}".encode(errors="surrogatepass")).hexdigest()
    return f"job:{digest[:48]}"
