"""Broken stores whose defect shows in begins, leases, changes and what is looked up."""

from tests.conformance.broken import Broken
from tests.conformance.broken_ledgers import (
    ChecksThenActs,
    LetsAnybodyBegin,
    LetsAnybodyRelease,
    LetsAnybodySettle,
    TellsNobody,
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
        "a death of which nobody is told",
        ledger(TellsNobody),
        frozenset(
            {
                "test_a02_explain_shows_the_hook_besides",
                "test_a03_runs_and_calls_have_one_and_backfills_none",
                "test_a03_verify_counts_them_nowhere",
                "test_d08_it_neither_takes_the_place_nor_waits_for_it",
                "test_j06_its_failures_pause_no_schedule",
                "test_j07_a_dead_hook_that_is_retried_begins_once_more",
                "test_j07_each_death_is_told_once",
                "test_j07_operators_cancel_retry_and_delete_a_hook",
                "test_j10_hooks_are_none_of_the_newest_twenty_and_stay_as_long_as_the_dead",
                "test_j11_what_a_hook_is_told_comes_back_whole_and_short",
                "test_j13_a_death_that_is_not_written_has_no_hook",
                "test_j13_a_repeat_tells_nothing_twice",
                "test_j13_each_way_to_die_has_its_hook",
                "test_l01_a_schedule_that_is_done_tells_of_its_last_death",
                "test_l01_it_uses_up_no_run_and_is_no_last_run",
                "test_m02_a_pause_of_its_schedule_holds_it_not",
                "test_m02_a_schedule_that_is_disabled_tells",
                "test_m07_a_schedule_that_is_deleted_tells_nobody",
                "test_m07_nor_does_one_that_is_made_anew_under_its_name",
                "test_t03_a_hook_may_begin_within_a_day",
                "test_t03_a_lost_hook_is_tried_again",
                "test_t04_a_failure_that_is_tried_again_has_none_until_it_is_spent",
                "test_t04_a_hook_is_leased_begun_and_settled_once",
                "test_t04_it_is_tried_five_times_and_then_dies_in_silence",
                "test_t06_a_late_edit_takes_the_hook_away_or_names_another",
                "test_o02_a_pause_of_a_group_holds_it",
                "test_o02_a_pause_of_its_user_holds_it_and_what_it_brought",
            }
        ),
    ),
    Broken(
        "stale settle",
        ledger(LetsAnybodySettle),
        frozenset(
            {
                "test_o02_a_pause_of_a_group_holds_it",
                "test_o02_a_pause_of_its_user_holds_it_and_what_it_brought",
                "test_o03_hours_of_waiting_are_no_lateness_that_kills",
                "test_t03_a_lost_one_that_is_retried_is_not_lost_by_its_old_window",
                "test_t07_a_stale_fence_gives_nothing_back",
                "test_t07_a_stale_fence_may_not_settle",
            }
        ),
    ),
    Broken(
        "stale begin",
        ledger(LetsAnybodyBegin),
        frozenset(
            {
                "test_o02_a_pause_of_a_group_holds_it",
                "test_d12_an_occurrence_of_another_flow_is_unknown",
                "test_o02_a_pause_of_its_user_holds_it_and_what_it_brought",
                "test_o03_hours_of_waiting_are_no_lateness_that_kills",
                "test_t03_one_that_never_began_has_its_window_anew",
                "test_t07_a_fence_of_a_lease_that_was_taken_over_is_stale",
                "test_t07_a_stale_fence_may_not_begin",
                "test_t07_who_released_it_holds_nothing",
            }
        ),
    ),
    Broken(
        "stale release",
        ledger(LetsAnybodyRelease),
        frozenset(
            {
                "test_o02_a_pause_of_a_group_holds_it",
                "test_o02_a_pause_of_its_user_holds_it_and_what_it_brought",
                "test_o03_hours_of_waiting_are_no_lateness_that_kills",
                "test_t07_a_stale_fence_may_not_release",
            }
        ),
    ),
    Broken(
        "check then act",
        ledger(ChecksThenActs),
        frozenset(
            {
                "test_d08_claimed_occurrences_race_for_the_one_place",
                "test_d08_one_of_many_occurrences_begins_where_they_may_not_overlap",
                "test_o02_a_pause_of_its_user_holds_it_and_what_it_brought",
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
                "test_a01_a_pause_whose_window_was_taken_away_counts_nothing_that_is_due",
                "test_a01_each_time_of_a_long_life_has_one_outcome",
                "test_a02_a_deleted_schedule_is_explained_and_one_that_never_was_is_not",
                "test_a02_a_schedule_that_was_deleted_is_verified_up_to_its_end",
                "test_a02_a_walk_over_deleted_schedules_goes_on_where_it_stopped",
                "test_i12_a_failed_delete_leaves_record_and_row",
                "test_j10_what_stayed_leaves_once_its_schedule_is_deleted",
                "test_m07_a_row_that_was_set_back_is_accounted_for_from_where_it_had_fired",
                "test_m07_deleting_accounts_for_what_was_due",
                "test_m07_one_time_that_was_due_is_a_range_of_one",
            }
        ),
        by_chance=frozenset(
            {
                "test_a01_a_claim_and_a_delete_at_once_account_for_the_time_once",
            }
        ),
    ),
    Broken(
        "unchanged moves",
        schedules(MovesTheUnchanged),
        frozenset(
            {
                "test_a01_a_change_behind_the_one_before_takes_effect_after_it",
                "test_i13_a_change_of_no_time_leaves_a_row_poisoned",
                "test_m04_a_due_time_belongs_to_the_last_of_several_flows",
                "test_m04_declaring_the_same_again_leaves_what_is_due",
                "test_m07_a_change_that_moves_no_time_cancels_nothing",
            }
        ),
        by_chance=frozenset(
            {
                "test_i16_puts_at_once_leave_record_and_row_alike",
            }
        ),
    ),
    Broken(
        "retry early",
        hands_out_early,
        frozenset(
            {
                "test_t04_a_pause_holds_a_retry_until_it_is_over",
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
                "test_j04_a_mass_death_is_told_once_each_in_bounded_steps",
                "test_j10_a_recovery_tells_of_what_it_gives_up_only_if_all_may_fire",
                "test_j13_each_way_to_die_has_its_hook",
                "test_t03_a_lost_hook_is_tried_again",
                "test_a_recovery_that_died_after_it_leased_goes_on",
                "test_a_recovery_that_stopped_leaves_nothing_leased",
                "test_j05_a_lost_attempt_leaves_a_trace",
                "test_j07_an_attempt_that_was_lost_for_good_is_told",
                "test_j07_each_failed_attempt_is_told_with_its_time",
                "test_o05_filters_sift_what_an_index_lists",
                "test_t03_a_lost_one_that_is_retried_is_not_lost_by_its_old_window",
                "test_t03_an_attempt_lost_at_most_once_is_the_end",
                "test_t04_a_lost_attempt_counts_and_the_last_one_is_the_end",
                "test_t04_an_attempt_lost_at_least_once_is_handed_out_again",
                "test_t07_a_lost_attempt_is_a_failure",
                "test_t07_a_lost_lease_is_taken_over_by_one",
                "test_t07_an_attempt_that_began_before_its_claim_is_lost_at_the_end_of_its_lease",
                "test_t07_who_lost_the_lease_cannot_settle",
                "test_what_was_under_way_in_the_backup_is_lost",
                "test_with_fire_what_was_under_way_goes_on",
            }
        ),
    ),
    Broken(
        "range of one",
        sql("occurrence_put", ":count,", "1,"),
        frozenset(
            {
                "test_a01_a_delete_closes_a_pause",
                "test_a01_a_delete_closes_a_pause_that_has_an_end",
                "test_a01_a_pause_after_a_change_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_pause_ahead_counts_no_time_twice",
                "test_a01_a_pause_is_a_range_that_the_resume_closes",
                "test_a01_a_pause_is_a_range_when_it_ends",
                "test_a01_a_pause_that_ended_after_the_last_run_is_closed_too",
                "test_a01_a_pause_that_is_asked_for_again_counts_from_its_beginning",
                "test_a01_a_pause_that_is_edited_ahead_loses_no_time_that_is_new",
                "test_a01_a_pause_that_is_edited_under_a_range_loses_no_time_that_is_new",
                "test_a01_a_pause_that_was_edited_meanwhile_is_counted_by_both",
                "test_a01_a_pause_whose_window_was_taken_away_counts_nothing_that_is_due",
                "test_a01_a_pause_with_an_end_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_pause_with_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_pause_with_an_end_that_was_disabled_is_closed_by_a_resume",
                "test_a01_a_pause_without_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_poisoned_time_is_accounted_for_once",
                "test_a01_a_rebuild_behind_a_claims_clock_loses_and_doubles_no_time",
                "test_a01_after_downtime_every_time_is_accounted_for",
                "test_a01_an_edit_that_pauses_too_loses_no_time_that_is_new",
                "test_a01_each_time_of_a_long_life_has_one_outcome",
                "test_a01_the_audit_makes_a_range_of_a_pause_that_ended_by_itself",
                "test_a01_two_rebuilds_account_for_each_time_once",
                "test_a01_what_a_caller_brings_hides_no_time_before_it",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_a_caller_brought",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
                "test_a01_what_a_lost_row_missed_is_accounted_for_by_a_rebuild",
                "test_a01_what_is_due_at_the_last_run_leaves_out_that_run",
                "test_a01_what_operators_change_still_adds_up",
                "test_a02_a_row_that_cannot_be_read_owes_nothing_until_it_is_mended",
                "test_a02_a_run_that_is_given_back_begins_the_times_again",
                "test_a02_a_schedule_that_was_deleted_is_verified_up_to_its_end",
                "test_a02_a_time_of_a_range_is_explained_by_the_range",
                "test_a02_a_walk_over_deleted_schedules_goes_on_where_it_stopped",
                "test_a02_downtime_is_one_range",
                "test_a02_new_rules_of_a_paused_schedule_are_dated",
                "test_a02_new_rules_of_a_zone_leave_what_was_claimed_ahead",
                "test_a_dry_run_foresees_it_and_changes_nothing",
                "test_a_recovery_that_stopped_goes_on",
                "test_an_occurrence_of_its_own_is_no_part_of_the_range",
                "test_d02_a_first_attempt_that_was_rejected_gives_its_run_back",
                "test_d02_a_run_that_is_given_back_after_a_pause_leaves_no_time_out",
                "test_j09_nothing_older_than_the_longest_lateness_fires",
                "test_j09_what_is_collapsed_is_one_row_with_range_and_count",
                "test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range",
                "test_j13_a_time_that_a_range_accounts_for_is_brought_by_nobody",
                "test_latest_lets_the_newest_fire",
                "test_m07_a_change_of_timing_accounts_for_what_was_due",
                "test_m07_a_row_that_was_set_back_is_accounted_for_from_where_it_had_fired",
                "test_m07_deleting_accounts_for_what_was_due",
                "test_m07_disabling_accounts_for_what_was_due",
                "test_o02_it_stands_until_no_row_is_due_for_its_times",
                "test_o02_what_is_missed_around_it_is_a_range_on_each_side",
                "test_skip_records_what_may_have_fired_and_ticks_go_on",
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
                "test_a02_explain_shows_the_hook_besides",
                "test_a03_a_plan_tells_what_the_history_has",
                "test_a03_verify_counts_none_of_them_and_explain_tells_of_them",
                "test_j07_nothing_of_the_time_itself_is_found_before_it",
                "test_j07_pages_divide_what_shares_a_time",
                "test_j10_what_a_purge_deleted_may_have_fired_so_it_is_not_missing",
            }
        ),
    ),
    Broken(
        "drift not looked for",
        sql("books", "i.timezone, i.next_fire_at", "i.timezone, 0"),
        frozenset(
            {
                "test_a01_a_row_that_is_set_back_into_a_range_fires_nothing_of_it",
                "test_a01_what_a_drifted_row_missed_is_accounted_for_by_a_rebuild",
                "test_a_row_that_cannot_be_read_is_left_to_the_tick",
                "test_i16_a_row_that_waits_for_a_time_nobody_named_is_found",
                "test_i16_a_row_that_waits_too_long_is_found_and_mended",
                "test_i16_every_row_is_looked_at",
                "test_t12_a_row_that_a_tick_may_still_come_for_is_not_overdue",
                "test_t12_a_row_that_is_due_for_more_than_an_hour_is_overdue",
                "test_t12_a_row_that_should_not_be_there_is_stale",
                "test_t12_a_row_that_waits_for_a_wrong_time_is_stale",
                "test_t12_a_sound_store_has_active_schedules_and_no_findings",
                "test_t12_an_active_schedule_of_an_older_tzdata_is_counted_until_it_is_defined_anew",
                "test_t12_what_cannot_be_read_is_counted_until_it_is_mended",
            }
        ),
    ),
    Broken(
        "blind to what was allowed",
        sql("occurrences_in_place", "o.place >= ''", "(o.place = '' OR o.state = 'retrying')"),
        frozenset(
            {
                "test_d08_each_of_those_that_were_allowed_counts",
                "test_d08_skip_sees_what_began_while_it_was_allowed",
            }
        ),
    ),
    Broken(
        "users mixed",
        sql("occurrences_in_place", "o.user_id = :user_id AND", ""),
        frozenset(
            {
                "test_d08_skip_leaves_equal_keys_of_other_users_alone",
            }
        ),
    ),
    Broken(
        "blind to retries that wait",
        sql("occurrences_in_place", "o.place >= ''", "o.place >= '' AND o.state <> 'retrying'"),
        frozenset(
            {
                "test_d08_a_retry_follows_the_overlap_policy_of_its_schedule",
                "test_d08_a_retry_that_a_tick_passes_over_keeps_its_place",
                "test_d08_a_retry_waits_for_one_successor_at_most",
                "test_d08_of_two_retries_the_one_that_is_not_leased_keeps_its_place",
                "test_d08_one_successor_begins_before_a_retry_though_no_tick_comes",
                "test_t04_a_delete_ends_a_retry_that_a_pause_holds",
                "test_t04_a_disabling_ends_a_retry_that_a_pause_holds",
                "test_t04_a_pause_holds_a_retry_until_it_is_over",
                "test_t04_a_pause_that_is_lifted_early_holds_nothing_more",
                "test_t04_a_retry_of_a_paused_schedule_is_held_until_it_is_resumed",
                "test_t04_a_retry_outlives_a_pause_after_which_its_schedule_fires_no_more",
            }
        ),
    ),
    Broken(
        "retries that wait lose their place",
        sql("retries_reserve", "o.state = 'retrying'", "o.state = 'nothing'"),
        frozenset(
            {
                "test_d08_a_retry_that_a_tick_passes_over_keeps_its_place",
                "test_d08_of_two_retries_the_one_that_is_not_leased_keeps_its_place",
            }
        ),
    ),
    Broken(
        "runs never given back",
        sql("schedule_put", "runs = excluded.runs", "runs = max(schedules.runs, excluded.runs)"),
        frozenset(
            {
                "test_d02_a_first_attempt_that_was_rejected_gives_its_run_back",
                "test_d02_a_rejection_that_is_said_twice_gives_one_run_back",
                "test_d02_a_run_that_is_given_back_after_a_pause_leaves_no_time_out",
                "test_d02_a_run_that_is_given_back_makes_it_active_and_it_counts_again",
                "test_d02_a_run_that_was_given_back_can_be_taken",
                "test_d02_an_at_whose_run_is_given_back_stays_done",
                "test_d02_such_a_retry_is_refused_if_the_runs_are_used_up",
                "test_d02_the_run_that_a_rejected_attempt_gave_back_is_counted_by_its_retry",
                "test_d02_what_began_under_a_namesake_gives_its_run_back_to_it",
                "test_d02_what_was_claimed_ahead_is_accounted_for_once",
                "test_l01_a_run_that_was_rejected_does_not_count",
            }
        ),
    ),
    Broken(
        "zone ignored",
        sql("claim_select", "i.timezone", "NULL"),
        frozenset(
            {
                "test_a02_a_row_that_cannot_be_read_owes_nothing_until_it_is_mended",
                "test_i03_an_occurrence_carries_the_expression_and_zone",
                "test_i08_a_timezone_is_heeded",
                "test_i13_a_zone_that_cannot_be_read_is_poison_too",
                "test_m03_what_became_unreadable_is_kept_not_indexed_and_reported",
                "test_t12_what_cannot_be_read_is_counted_until_it_is_mended",
            }
        ),
    ),
)
