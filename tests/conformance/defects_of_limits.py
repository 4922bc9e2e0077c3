"""Broken stores that do not keep to limits, each with the tests that have to notice it."""

from collections.abc import Sequence

from duetick.domain.limits import NO_LIMITS
from duetick.domain.occurrence import Occurrence
from duetick.ports import Chunk, Fair

from tests.conformance.broken import AlteredShelf, Broken
from tests.conformance.broken_stores import shelf, sql


class ClaimsDespiteLimits(AlteredShelf):
    """A claim leases occurrences that have to wait for a place."""

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        return super().claim(now, limit, ahead, fair._replace(limits=NO_LIMITS))


class LeasesDespiteLimits(AlteredShelf):
    """A lease takes all occurrences that wait."""

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        return super().lease(now, limit, ahead, fair._replace(limits=NO_LIMITS))


LIMITS = (
    Broken(
        "claims despite limits",
        shelf(ClaimsDespiteLimits),
        frozenset(
            {
                "test_o03_a_claim_records_what_waits_and_leases_only_what_has_a_place",
                "test_o03_a_tick_counts_what_it_has_in_its_hands",
                "test_o03_it_stays_so_if_the_limit_is_lifted_meanwhile",
                "test_o03_what_waits_keeps_its_order",
                "test_t06_what_is_due_ahead_is_leased_if_there_is_a_place",
                "test_t14_a_mass_that_waits_hides_nobody",
                "test_t14_who_is_not_limited_is_not_held_up",
            }
        ),
    ),
    Broken(
        "leases despite limits",
        shelf(LeasesDespiteLimits),
        frozenset(
            {
                "test_o03_a_limit_holds_jobs_back",
                "test_o03_a_claim_records_what_waits_and_leases_only_what_has_a_place",
                "test_o03_a_hook_that_fails_gives_its_place_back_until_it_retries",
                "test_o03_a_hook_waits_for_a_place_of_the_action_that_it_runs",
                "test_o03_a_limit_that_is_lifted_lets_the_hook_run",
                "test_o03_a_mass_that_dies_is_told_two_at_a_time_and_each_once",
                "test_o03_a_rate_counts_the_begins_of_each_minute_of_the_clock",
                "test_o03_a_rate_holds_a_hook_for_days_and_does_not_lose_it",
                "test_o03_a_retry_that_waits_is_not_dead_and_tells_nothing",
                "test_o03_a_retry_waits_for_a_place_and_blocks_nobody",
                "test_o03_a_tick_counts_what_it_has_in_its_hands",
                "test_o03_hours_of_waiting_are_no_lateness_that_kills",
                "test_o03_it_stays_so_if_the_limit_is_lifted_meanwhile",
                "test_o03_what_waits_keeps_its_order",
                "test_t06_what_is_due_ahead_is_leased_if_there_is_a_place",
                "test_t07_a_renewed_attempt_keeps_its_place",
                "test_t07_the_end_of_a_lease_frees_the_place_of_an_attempt_that_is_lost",
                "test_t14_a_mass_that_waits_hides_nobody",
            }
        ),
    ),
    Broken(
        "what waits for a limit hides others",
        sql(
            "occurrences_due_unheld",
            "o.user_id NOT IN (SELECT value FROM json_each(:full_users))",
            "1 = 1",
        ),
        frozenset({"test_t14_a_mass_that_waits_hides_nobody"}),
    ),
    Broken(
        "a hook waits for the limit of the action that failed",
        sql(
            "occurrences_due_unheld",
            "THEN json_extract(f.policies, '$.on_failure') ELSE",
            "THEN f.action ELSE",
        ),
        frozenset({"test_o03_a_hook_takes_no_place_of_the_action_that_failed"}),
    ),
)
