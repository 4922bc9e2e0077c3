"""Broken stores whose defect shows in begins, leases, changes and what is looked up."""

from tests.conformance.broken import Broken
from tests.conformance.broken_ledgers import (
    ChecksThenActs,
    LetsAnybodyBegin,
    LetsAnybodyRelease,
    LetsAnybodySettle,
    hands_out_early,
    ledger,
)
from tests.conformance.broken_stores import (
    ForgetsWhatWasDue,
    MovesTheUnchanged,
    schedules,
    sql,
)

LEDGERS = (
    Broken(
        "stale settle",
        ledger(LetsAnybodySettle),
        frozenset({"test_t07_a_stale_fence_may_not_settle"}),
    ),
    Broken(
        "stale begin",
        ledger(LetsAnybodyBegin),
        frozenset(
            {
                "test_d12_an_occurrence_of_another_flow_is_unknown",
                "test_t07_a_fence_of_a_lease_that_was_taken_over_is_stale",
                "test_t07_a_stale_fence_may_not_begin",
                "test_t07_who_released_it_holds_nothing",
            }
        ),
    ),
    Broken(
        "stale release",
        ledger(LetsAnybodyRelease),
        frozenset({"test_t07_a_stale_fence_may_not_release"}),
    ),
    Broken(
        "check then act",
        ledger(ChecksThenActs),
        frozenset(
            {
                "test_d08_claimed_occurrences_race_for_the_one_place",
                "test_d08_one_of_many_occurrences_begins_where_they_may_not_overlap",
            }
        ),
    ),
    Broken(
        "delete does not account",
        schedules(ForgetsWhatWasDue),
        frozenset(
            {
                "test_a01_a_delete_closes_a_pause",
                "test_a01_a_delete_closes_a_pause_that_has_an_end",
                "test_a01_each_time_of_a_long_life_has_one_outcome",
                "test_i12_a_failed_delete_leaves_record_and_row",
                "test_m07_a_row_that_was_set_back_is_accounted_for_from_where_it_had_fired",
                "test_m07_deleting_accounts_for_what_was_due",
                "test_m07_one_time_that_was_due_is_a_range_of_one",
            }
        ),
        by_chance=frozenset({"test_a01_a_claim_and_a_delete_at_once_account_for_the_time_once"}),
    ),
    Broken(
        "unchanged moves",
        schedules(MovesTheUnchanged),
        frozenset(
            {
                "test_m04_declaring_the_same_again_leaves_what_is_due",
                "test_m07_a_change_that_moves_no_time_cancels_nothing",
            }
        ),
        by_chance=frozenset({"test_i16_puts_at_once_leave_record_and_row_alike"}),
    ),
    Broken(
        "retry early",
        hands_out_early,
        frozenset(
            {
                "test_t04_a_retry_is_not_handed_out_early",
                "test_t06_what_is_spread_is_leased_ahead_of_its_second",
                "test_t08_what_is_spread_is_handed_out_at_its_due_time",
            }
        ),
    ),
    Broken(
        "crashed never found",
        sql("occurrences_lease_over", "('queued', 'processing')", "('queued')"),
        frozenset(
            {
                "test_j05_a_lost_attempt_leaves_a_trace",
                "test_t03_an_attempt_lost_at_most_once_is_the_end",
                "test_t04_a_lost_attempt_counts_and_the_last_one_is_the_end",
                "test_t04_an_attempt_lost_at_least_once_is_handed_out_again",
                "test_t07_a_lost_lease_is_taken_over_by_one",
                "test_t07_who_lost_the_lease_cannot_settle",
            }
        ),
    ),
    Broken(
        "range of one",
        sql("occurrence_insert", ":count,", "1,"),
        frozenset(
            {
                "test_a01_a_delete_closes_a_pause",
                "test_a01_a_delete_closes_a_pause_that_has_an_end",
                "test_a01_a_pause_after_a_change_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_pause_ahead_counts_no_time_twice",
                "test_a01_a_pause_is_a_range_that_the_resume_closes",
                "test_a01_a_pause_that_is_edited_ahead_loses_no_time_that_is_new",
                "test_a01_a_pause_that_was_edited_meanwhile_is_counted_by_both",
                "test_a01_a_pause_with_an_end_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_pause_with_an_end_that_was_disabled_is_closed_by_a_resume",
                "test_a01_a_poisoned_time_is_accounted_for_once",
                "test_a01_after_downtime_every_time_is_accounted_for",
                "test_a01_an_edit_that_pauses_too_loses_no_time_that_is_new",
                "test_a01_each_time_of_a_long_life_has_one_outcome",
                "test_a01_two_rebuilds_account_for_each_time_once",
                "test_a01_what_a_caller_brings_hides_no_time_before_it",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_a_caller_brought",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
                "test_a01_what_a_lost_row_missed_is_accounted_for_by_a_rebuild",
                "test_a01_what_is_due_at_the_last_run_leaves_out_that_run",
                "test_j09_nothing_older_than_the_longest_lateness_fires",
                "test_j09_what_is_collapsed_is_one_row_with_range_and_count",
                "test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range",
                "test_j13_a_time_that_a_range_accounts_for_is_brought_by_nobody",
                "test_m07_a_change_of_timing_accounts_for_what_was_due",
                "test_m07_a_row_that_was_set_back_is_accounted_for_from_where_it_had_fired",
                "test_m07_deleting_accounts_for_what_was_due",
                "test_m07_disabling_accounts_for_what_was_due",
                "test_t10_after_downtime_there_is_one_decision_for_each_schedule",
            }
        ),
    ),
    Broken(
        "ties lost at the edge of a page",
        sql(
            "occurrences_of_schedule",
            """(o.nominal_at < :before
    OR (o.user_id, o.key, o.origin) > (:after_user, :after_key, :after_origin))""",
            "o.nominal_at < :before",
        ),
        frozenset(
            {
                "test_j07_nothing_of_the_time_itself_is_found_before_it",
                "test_j07_pages_divide_what_shares_a_time",
            }
        ),
    ),
    Broken(
        "drift not looked for",
        sql("index_after", "i.timing <> 0", "i.timing < 0"),
        frozenset(
            {
                "test_a01_a_row_that_is_set_back_into_a_range_fires_nothing_of_it",
                "test_a01_what_a_drifted_row_missed_is_accounted_for_by_a_rebuild",
                "test_i16_a_row_that_waits_for_a_time_nobody_named_is_found",
                "test_i16_a_row_that_waits_too_long_is_found_and_mended",
                "test_i16_every_row_is_looked_at",
            }
        ),
    ),
    Broken(
        "blind to what was allowed",
        sql("occurrence_running", "o.exclusive = 0", "o.exclusive = 2"),
        frozenset(
            {
                "test_d08_each_of_those_that_were_allowed_counts",
                "test_d08_skip_sees_what_began_while_it_was_allowed",
            }
        ),
    ),
    Broken(
        "users mixed",
        sql("occurrence_running", "o.user_id = :user_id AND", ""),
        frozenset({"test_d08_skip_leaves_equal_keys_of_other_users_alone"}),
    ),
    Broken(
        "zone ignored",
        sql("claim_select", "i.timezone", "NULL"),
        frozenset(
            {
                "test_i03_an_occurrence_carries_the_expression_and_zone",
                "test_i08_a_timezone_is_heeded",
                "test_i13_a_zone_that_cannot_be_read_is_poison_too",
                "test_m03_what_became_unreadable_is_kept_not_indexed_and_reported",
            }
        ),
    ),
)
