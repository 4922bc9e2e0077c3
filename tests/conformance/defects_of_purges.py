"""Stores that purge wrongly, or whose locks keep nobody out, each with the tests that notice it."""

from duetick.stores.sql.queries import load

from tests.conformance.broken import AlteredStore, Broken
from tests.conformance.broken_stores import sql


def purges_what_runs(store: AlteredStore) -> None:
    """The age alone decides, in any state."""
    ended = "state IN ('succeeded', 'cancelled', 'dead', 'deleted')"
    store.database.alter("retire_ended", load("sqlite")["is_ended"], "o.state <> ''")
    store.database.alter("retire_occurrences", ended, "state <> ''")


PURGES = (
    Broken(
        "a purge that keeps one of each schedule",
        sql("retire_newest", "LIMIT 1 OFFSET :beyond", "LIMIT 1 OFFSET 0 * :beyond"),
        frozenset(
            {
                "test_j10_hooks_are_none_of_the_newest_twenty_and_stay_as_long_as_the_dead",
                "test_j10_runs_by_hand_are_among_the_newest_twenty",
                "test_j10_the_newest_twenty_of_a_schedule_stay",
                "test_j10_what_stayed_leaves_once_its_schedule_is_deleted",
                "test_j10_what_stayed_leaves_when_a_newer_one_comes_of_age",
            }
        ),
    ),
    Broken(
        "a purge of what runs",
        purges_what_runs,
        frozenset(
            {
                "test_j10_nothing_that_is_under_way_is_touched",
                "test_j10_the_record_of_a_job_stays_while_its_failure_hook_waits",
            }
        ),
    ),
    Broken(
        "a purge that leaves the events",
        sql("retire_events", "WHERE", "WHERE 1 = 0 AND"),
        frozenset(
            {
                "test_j10_what_is_dead_leaves_after_ninety_with_its_events",
            }
        ),
    ),
    Broken(
        "a purge that leaves the records of jobs",
        sql("retire_jobs", "o.done_at IS NOT NULL", "1 = 0"),
        frozenset({"test_j10_the_record_of_a_job_leaves_with_its_occurrence"}),
    ),
    Broken(
        "a purge that takes the record of a job from its failure hook",
        sql("retire_jobs", "e.key = o.key", "e.key = '' AND o.key <> ''"),
        frozenset({"test_j10_the_record_of_a_job_stays_while_its_failure_hook_waits"}),
    ),
    Broken(
        "what was held stays for ever",
        sql("held_of_schedule", "key = :key", "key = '' AND :key <> ''"),
        frozenset(
            {
                "test_j10_what_stayed_leaves_once_its_schedule_is_deleted",
            }
        ),
    ),
    Broken(
        "what was held never makes room",
        sql("retire_held", "o.nominal_at <= n.value ->> 2", "1 = 0"),
        frozenset(
            {
                "test_j10_what_stayed_leaves_when_a_newer_one_comes_of_age",
            }
        ),
    ),
    Broken(
        "a lock for everybody",
        sql("lock_acquire", "locks.until <= :now", "locks.until <> :now"),
        frozenset(
            {
                "test_j08_a_lock_is_taken_if_it_is_absent_and_by_nobody_else",
                "test_j08_a_lock_whose_time_is_over_is_anybodys",
                "test_j08_of_two_at_once_one_has_the_lock",
                "test_j08_only_its_owner_extends_a_lock",
                "test_j10_a_purge_that_another_one_keeps_out_deletes_nothing",
            }
        ),
    ),
    Broken(
        "a lock that anybody extends",
        sql("lock_extend", "owner = :owner", "owner <> '' AND :owner <> ''"),
        frozenset(
            {
                "test_j08_only_its_owner_extends_a_lock",
            }
        ),
    ),
)
