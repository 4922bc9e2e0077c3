"""Broken stores that do not keep to jobs, each with the tests that have to notice it."""

from typing import TypeVar

from duetick.domain.occurrence import Leased
from duetick.ports import NO_TERMS, Alter, JobsFound, Terms

from tests.conformance.broken import AlteredShelf, Broken
from tests.conformance.broken_stores import shelf, sql

T = TypeVar("T")


class KeepsNoKey(AlteredShelf):
    """A change neither checks nor keeps a creation."""

    def change(
        self,
        user_id: str,
        key: str,
        now: int,
        alter: Alter[T],
        *,
        about: Leased | None = None,
        alone: bool = False,
        terms: Terms = NO_TERMS,
    ) -> T:
        kept = terms._replace(creation=None)
        return super().change(user_id, key, now, alter, about=about, alone=alone, terms=kept)


class ListsAllJobs(AlteredShelf):
    """A list of pending jobs also has the jobs that have ended."""

    def jobs(self, user_id: str, after: str, limit: int, *, ended: bool | None = None) -> JobsFound:
        del ended
        return super().jobs(user_id, after, limit)


JOBS = (
    Broken(
        "keeps no key",
        shelf(KeepsNoKey),
        frozenset(
            {
                "test_a_key_is_forgotten_at_its_end",
                "test_a_key_is_one_users_and_is_erased_with_them",
                "test_a_key_that_is_taken_makes_nothing",
                "test_k02_a_repeat_is_answered_with_the_job_as_it_is",
                "test_k02_of_several_at_once_with_one_key_one_makes_a_job",
                "test_k02_the_same_key_makes_nothing_more_within_a_day",
                "test_l01_a_creation_leaves_at_its_end",
                "test_of_several_creations_at_once_with_one_key_one_wins",
                "test_what_a_creation_made_is_kept_in_mind_whatever_becomes_of_it",
            }
        ),
    ),
    Broken(
        "lists all jobs",
        shelf(ListsAllJobs),
        frozenset(
            {
                "test_k01_a_list_has_pages_and_those_that_are_pending",
            }
        ),
    ),
    Broken(
        "a job that is lost stays pending",
        sql("job_end", "SET done_at = :done_at, purge_at = :purge_at", "SET done_at = NULL"),
        frozenset(
            {
                "test_k01_every_way_to_end_makes_room",
                "test_t03_a_job_that_never_settles_is_lost",
            }
        ),
    ),
    Broken(
        "an overview that does not see the jobs",
        sql("jobs_due", "due_at <= :now", "due_at <= :now AND 1 = 0"),
        frozenset(
            {
                "test_j07_an_overview_counts_the_jobs_that_are_due",
                "test_j07_what_a_limit_holds_is_not_counted_as_due",
                "test_j07_what_a_pause_holds_is_not_counted_as_due",
            }
        ),
    ),
)
