"""The catalogue of broken stores, each with the tests of the suite that have to notice it."""

from tests.conformance.broken import Broken
from tests.conformance.broken_stores import (
    AsksForTheRepeatFirst,
    CommitsTheRowFirst,
    EmptyTimezone,
    OnePageOnly,
    ReadsAsEmpty,
    ReadsThenTakes,
    claiming,
    ends_early,
    erasing_all_but,
    fires_twice,
    loses_the_advance,
    reads_the_wall_clock,
    records_later,
    schedules,
    session,
    shelf,
    sql,
    starves_behind_poison,
    works_from_memory,
)
from tests.conformance.defects_of_fairness import FAIRNESS
from tests.conformance.defects_of_forecasts import FORECASTS
from tests.conformance.defects_of_jobs import JOBS
from tests.conformance.defects_of_ledgers import LEDGERS
from tests.conformance.defects_of_limits import LIMITS
from tests.conformance.defects_of_purges import PURGES

MARK_KEPT = "mark = max(coalesce(schedule_index.mark, excluded.mark), excluded.mark)"

CLAIMS = (
    Broken(
        "double claim",
        shelf(ReadsThenTakes),
        frozenset(
            {
                "test_a01_what_is_new_under_a_range_fires_on_time",
                "test_i05_claimers_at_once_get_disjoint_sets_that_are_everything",
            }
        ),
    ),
    Broken(
        "lost advance",
        claiming(loses_the_advance),
        frozenset(
            {
                "test_a01_a_change_far_behind_takes_effect_later_and_divides_little",
                "test_a01_a_pause_with_an_end_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_pause_with_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_pause_without_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_rebuild_behind_a_claims_clock_loses_and_doubles_no_time",
                "test_a01_a_row_that_is_set_back_far_loses_no_time_that_is_new",
                "test_a01_after_downtime_every_time_is_accounted_for",
                "test_a01_each_time_of_a_long_life_has_one_outcome",
                "test_a01_what_a_caller_brings_hides_no_time_before_it",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_a_caller_brought",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
                "test_a01_what_operators_change_still_adds_up",
                "test_a02_a_row_that_cannot_be_read_owes_nothing_until_it_is_mended",
                "test_a02_a_row_that_is_unreadable_again_owes_nothing_until_it_is_mended",
                "test_a02_a_time_of_a_range_is_explained_by_the_range",
                "test_a02_a_time_that_was_claimed_after_its_hour_is_verified_in_the_next",
                "test_a02_downtime_is_one_range",
                "test_a02_each_hour_verifies_a_part_and_the_next_one_goes_on",
                "test_a02_new_rules_of_a_zone_leave_what_was_claimed_ahead",
                "test_a_dry_run_foresees_it_and_changes_nothing",
                "test_a_recovery_that_stopped_goes_on",
                "test_d02_what_was_claimed_ahead_is_accounted_for_once",
                "test_fire_leaves_every_time_to_the_misfire_policy",
                "test_i02_rows_that_yield_nothing_do_not_end_a_claim",
                "test_i05_claimers_at_once_get_disjoint_sets_that_are_everything",
                "test_i06_a_time_that_is_now_is_not_the_next_one",
                "test_i06_the_next_time_is_the_first_after_now",
                "test_i08_a_timezone_is_heeded",
                "test_i08_an_absent_timezone_means_utc",
                "test_i14_the_next_time_follows_the_now_that_was_passed",
                "test_i15_claiming_goes_on_until_several_hundred_are_done",
                "test_i16_a_finished_schedule_is_no_difference",
                "test_i16_a_row_that_was_lost_after_a_claim_ahead_is_mended_beyond_that",
                "test_i16_a_schedule_whose_last_time_is_claimed_ahead_is_no_difference",
                "test_j07_a_range_is_told_where_one_of_its_times_is_asked_for",
                "test_j09_nothing_older_than_the_longest_lateness_fires",
                "test_j09_the_times_of_an_unreadable_row_are_a_misfire_once_it_is_mended",
                "test_j09_what_is_collapsed_is_one_row_with_range_and_count",
                "test_j10_explain_says_that_nobody_knows_of_a_purged_day",
                "test_j10_what_left_is_brought_by_nobody",
                "test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range",
                "test_j13_a_row_that_is_set_back_fires_none_of_its_times",
                "test_j13_a_row_that_is_set_back_fires_what_it_had_not_fired",
                "test_j13_a_time_that_a_range_accounts_for_is_brought_by_nobody",
                "test_l01_a_mark_beside_a_record_or_a_row_stays",
                "test_l01_a_mark_without_a_record_goes_400_days_after_its_time",
                "test_l01_a_schedule_that_fires_on_is_not_deleted",
                "test_latest_is_for_the_misfire_policy_to_refuse",
                "test_latest_lets_the_newest_fire",
                "test_m04_a_flow_is_dated_so_that_its_pauses_explain_its_times",
                "test_m05_rows_without_a_record_are_paused_too",
                "test_o02_a_claim_advances_what_a_pause_covers_and_records_nothing",
                "test_o02_it_stands_until_no_row_is_due_for_its_times",
                "test_s01_a_ring_claims_its_row_as_a_tick_does",
                "test_s01_a_tick_leaves_a_row_to_its_bell_for_five_minutes",
                "test_skip_records_what_may_have_fired_and_ticks_go_on",
                "test_t06_the_next_time_is_the_first_after_the_window",
                "test_t09_an_interval_does_not_drift",
                "test_t10_after_downtime_there_is_one_decision_for_each_schedule",
                "test_t12_a_row_that_is_due_for_more_than_an_hour_is_overdue",
                "test_t12_a_sound_store_has_active_schedules_and_no_findings",
                "test_t12_what_is_done_has_no_row_and_that_is_right",
                "test_t14_a_claim_breaks_off_among_rows_that_only_advance",
                "test_t14_a_share_does_not_hold_up_what_only_advances",
                "test_t14_who_is_not_limited_is_not_held_up",
                "test_o02_it_tells_of_no_fire_that_the_pause_of_a_group_leaves_out",
            }
        ),
    ),
    Broken(
        "due a millisecond early",
        sql("claim_select", "<= :until", "<= :until + 1"),
        frozenset(
            {
                "test_i02_leaves_what_is_due_a_millisecond_later",
                "test_s01_a_tick_leaves_a_row_to_its_bell_for_five_minutes",
            }
        ),
    ),
    Broken(
        "due a millisecond late",
        sql("claim_select", "<= :until", "< :until"),
        frozenset(
            {
                "test_j07_a_page_of_a_state_passes_over_what_was_deleted_since",
                "test_o02_a_retry_that_a_pause_of_its_group_holds_reserves_no_place",
                "test_a_limit_of_runs_tells_how_many_are_spent",
                "test_s01_a_tick_leaves_a_row_to_its_bell_for_five_minutes",
                "test_s01_the_next_due_is_the_end_of_a_lease_or_what_waits",
                "test_what_is_under_way_or_has_ended_does_not_wait",
                "test_t04_a_retry_does_not_wait_for_the_end_of_a_lease_that_was_renewed",
                "test_a01_what_is_new_under_a_range_fires_on_time",
                "test_a01_what_operators_change_still_adds_up",
                "test_a02_a_failed_attempt_and_its_event_are_explained",
                "test_a02_a_time_that_fired_is_explained_by_its_entry",
                "test_a02_the_limit_of_runs_is_foreseen",
                "test_a03_a_plan_tells_what_the_history_has",
                "test_a03_runs_by_hand_neither_count_nor_end_a_streak",
                "test_a_new_store_beside_an_old_witness_claims",
                "test_a_recovery_that_stopped_goes_on",
                "test_a_store_in_step_with_its_witness_claims",
                "test_a_witness_that_is_away_stops_no_tick",
                "test_d02_a_rejection_that_is_said_twice_gives_one_run_back",
                "test_d02_a_run_is_not_given_back_to_a_namesake",
                "test_d02_a_run_that_is_given_back_after_a_pause_leaves_no_time_out",
                "test_d02_a_run_that_was_given_back_can_be_taken",
                "test_d02_such_a_retry_is_refused_if_the_runs_are_used_up",
                "test_d08_a_cancelled_attempt_frees_its_place",
                "test_d08_a_leased_retry_has_its_place_and_its_successor_is_skipped",
                "test_d08_a_leased_retry_has_its_place_and_its_successor_waits",
                "test_d08_a_retry_follows_the_overlap_policy_of_its_schedule",
                "test_d08_a_retry_has_the_place_before_its_successor",
                "test_d08_a_retry_is_not_displaced_by_the_newest_that_waits",
                "test_d08_a_retry_is_not_leased_while_its_successor_runs",
                "test_d08_a_retry_of_the_schedule_is_leased_beside_it",
                "test_d08_a_retry_that_a_tick_passes_over_keeps_its_place",
                "test_d08_a_retry_that_is_leased_before_its_time_blocks_nobody",
                "test_d08_a_retry_that_may_overlap_waits_for_nobody",
                "test_d08_a_retry_that_was_given_back_has_its_place_before_a_second_successor",
                "test_d08_a_retry_waits_for_one_successor_at_most",
                "test_d08_a_retry_waits_while_another_of_its_schedule_runs",
                "test_d08_a_retry_whose_delay_is_not_over_blocks_nobody",
                "test_d08_it_begins_while_one_of_the_schedule_runs",
                "test_d08_of_many_retries_of_a_schedule_one_runs_at_a_time",
                "test_d08_of_two_retries_of_a_schedule_one_is_leased",
                "test_d08_of_two_retries_the_one_that_is_not_leased_keeps_its_place",
                "test_d08_one_successor_begins_before_a_retry_though_no_tick_comes",
                "test_d08_retries_of_it_by_an_operator_run_beside_the_schedules_own",
                "test_d08_the_place_of_a_retry_is_free_again_where_no_tick_comes",
                "test_d08_the_schedules_own_ones_run_beside_it",
                "test_d08_what_is_skipped_between_ends_no_streak",
                "test_fire_leaves_every_time_to_the_misfire_policy",
                "test_i02_leaves_what_is_due_a_millisecond_later",
                "test_i02_takes_what_is_due_at_this_very_millisecond",
                "test_j06_a_resume_begins_anew",
                "test_j06_a_success_between_begins_anew",
                "test_j06_an_occurrence_that_is_retried_and_succeeds_is_no_failure",
                "test_j06_its_note_repeats_no_error",
                "test_j06_so_many_failures_in_a_row_pause_it",
                "test_j06_without_the_policy_it_goes_on",
                "test_j07_a_filter_that_finds_nothing_is_no_missing_schedule",
                "test_j07_a_history_is_told_by_state",
                "test_j07_a_history_is_told_by_time",
                "test_j07_a_page_with_a_filter_looks_no_further_than_its_bound",
                "test_j07_occurrences_are_tallied_by_state_and_the_dead_by_their_time",
                "test_j07_one_that_died_long_ago_is_retried_and_listed_as_dead_no_more",
                "test_j07_rows_that_left_at_once_are_listed_in_the_order_of_their_names",
                "test_j07_what_is_under_way_is_found_behind_any_history",
                "test_j10_a_dead_one_that_stayed_and_is_retried_is_under_way",
                "test_j10_explain_says_that_nobody_knows_of_a_purged_day",
                "test_j10_nothing_that_is_under_way_is_touched",
                "test_j10_the_last_run_is_told_though_its_occurrence_left",
                "test_j10_the_newest_twenty_of_a_schedule_stay",
                "test_j10_verify_calls_no_purged_day_a_fault",
                "test_j10_what_a_purge_deleted_may_have_fired_so_it_is_not_missing",
                "test_j10_what_left_fires_no_more_though_its_row_is_set_back",
                "test_j10_what_left_is_brought_by_nobody",
                "test_j10_what_stayed_leaves_once_its_schedule_is_deleted",
                "test_j10_what_stayed_leaves_when_a_newer_one_comes_of_age",
                "test_j12_a_tick_reports_what_it_did",
                "test_j13_what_an_operator_deletes_counts_as_it_ended",
                "test_l01_a_schedule_that_is_done_is_not_paused",
                "test_l01_an_at_in_a_pause_is_done",
                "test_l01_an_edit_of_its_times_makes_it_active",
                "test_l01_it_uses_up_no_run",
                "test_latest_lets_the_newest_fire",
                "test_m06_a_static_schedule_is_paused_too",
                "test_o02_a_pause_of_others_changes_nothing",
                "test_o02_a_tick_that_began_before_the_pause_records_and_nothing_begins",
                "test_o02_a_tick_that_stands_still_lets_the_pause_end_later",
                "test_o03_what_waits_keeps_its_order",
                "test_o05_those_that_run_are_found_for_all_users_in_one_order",
                "test_t07_a_lost_attempt_is_a_failure",
                "test_t07_an_attempt_that_began_before_its_claim_is_lost_at_the_end_of_its_lease",
                "test_t12_a_sound_store_has_active_schedules_and_no_findings",
                "test_t14_a_mass_that_waits_hides_nobody",
                "test_what_waits_is_told_with_what_a_pause_would_do_to_it",
            }
        ),
    ),
    Broken(
        "newest first",
        sql("claim_select", "next_fire_at LIMIT", "next_fire_at DESC LIMIT"),
        frozenset(
            {
                "test_i02_hands_out_the_oldest_first",
                "test_i02_with_users_left_out_a_claim_takes_the_oldest_of_all_others",
                "test_i02_within_the_limit_the_oldest_go_first",
                "test_t14_a_claim_takes_no_more_than_a_share_of_each_user",
                "test_t14_shares_and_users_left_out_lead_to_every_user_in_turn",
                "test_t14_what_is_beyond_a_share_stays_due",
            }
        ),
    ),
    Broken(
        "limit ignored",
        sql("claim_select", "LIMIT :limit", "LIMIT 1000 + :limit"),
        frozenset(
            {
                "test_i02_takes_no_more_than_the_limit",
                "test_i02_with_users_left_out_a_claim_takes_the_oldest_of_all_others",
                "test_i02_within_the_limit_the_oldest_go_first",
                "test_t14_a_claim_breaks_off_among_rows_that_only_advance",
                "test_t14_shares_and_users_left_out_lead_to_every_user_in_turn",
            }
        ),
    ),
    Broken(
        "ends early",
        claiming(ends_early),
        frozenset(
            {
                "test_i02_rows_that_yield_nothing_do_not_end_a_claim",
                "test_i13_a_poison_row_never_delays_a_good_one",
                "test_i13_more_poison_than_one_page_is_listed",
                "test_t14_a_share_does_not_hold_up_what_only_advances",
                "test_t14_who_is_not_limited_is_not_held_up",
            }
        ),
    ),
    Broken(
        "poison starves",
        claiming(starves_behind_poison),
        frozenset(
            {
                "test_a02_a_time_that_was_lost_before_its_row_was_unreadable_again_is_missing",
                "test_a02_a_row_that_is_unreadable_again_owes_nothing_until_it_is_mended",
                "test_a_selection_narrows_rows_jobs_and_what_cannot_be_read",
                "test_a01_a_poisoned_one_that_is_deleted_still_adds_up",
                "test_a02_a_row_that_an_upsert_mends_misses_what_lies_behind_it",
                "test_a02_a_row_that_an_upsert_mends_owes_its_times_from_then_on",
                "test_a02_a_row_that_cannot_be_read_owes_nothing_in_later_hours",
                "test_a02_a_row_that_cannot_be_read_owes_nothing_until_it_is_mended",
                "test_a02_a_row_that_was_mended_owes_the_times_of_its_defect",
                "test_g06_a_poison_row_is_listed_with_its_reason",
                "test_g06_a_poisoned_schedule_tells_its_defect",
                "test_i13_a_change_of_no_time_leaves_a_row_poisoned",
                "test_i13_a_poison_row_leaves_the_due_range",
                "test_i13_a_poison_row_never_delays_a_good_one",
                "test_i13_a_rebuild_brings_back_what_can_be_read_by_now",
                "test_i13_a_row_is_restored_as_its_record_says",
                "test_i13_a_row_that_can_be_read_again_is_due_for_what_it_missed",
                "test_i13_a_row_that_still_cannot_be_read_is_not_restored",
                "test_i13_a_zone_that_cannot_be_read_is_poison_too",
                "test_i13_more_poison_than_one_page_is_listed",
                "test_i13_poison_without_a_record_is_told_and_left",
                "test_i13_whatever_text_a_row_holds_a_claim_survives_it",
                "test_j07_occurrences_are_tallied_by_state_and_the_dead_by_their_time",
                "test_j07_rows_that_left_at_once_are_listed_in_the_order_of_their_names",
                "test_j09_the_times_of_an_unreadable_row_are_a_misfire_once_it_is_mended",
                "test_l01_a_row_that_is_restored_without_a_next_time_is_done",
                "test_m03_what_became_unreadable_is_kept_not_indexed_and_reported",
                "test_o02_a_mended_row_fires_no_time_of_a_pause_that_stands_no_more",
                "test_rows_that_cannot_be_read_are_counted_beside_the_others",
                "test_t01_a_claim_tells_of_each_row_that_it_poisons",
                "test_t01_rows_poisoned_since_a_time_are_told",
                "test_t01_what_was_poisoned_first_is_listed_first",
                "test_t12_what_cannot_be_read_is_counted_until_it_is_mended",
            }
        ),
    ),
    Broken(
        "empty timezone",
        shelf(EmptyTimezone),
        frozenset(
            {
                "test_a02_a_missing_time_outside_of_it_is_a_fault",
                "test_a02_a_pass_counts_its_faults_over_its_hours",
                "test_a02_a_row_that_was_mended_owes_the_times_of_its_defect",
                "test_a02_a_time_that_the_row_was_moved_past_is_unaccounted",
                "test_a02_a_time_that_was_claimed_after_its_hour_is_verified_in_the_next",
                "test_a02_it_accounts_for_times_that_the_ledger_has_no_outcome_of",
                "test_i08_an_absent_timezone_stays_absent",
                "test_j10_what_stayed_leaves_when_a_newer_one_comes_of_age",
                "test_j13_a_row_that_is_set_back_fires_none_of_its_times",
                "test_s01_a_mark_is_kept_until_the_bell_is_there",
                "test_s01_an_edit_of_something_else_marks_no_bell",
                "test_s01_the_last_run_moves_the_bell_and_one_that_is_given_back_moves_it_again",
                "test_s01_what_moves_a_bell_marks_it_in_the_same_write",
            }
        ),
    ),
    Broken(
        "index drift",
        session(CommitsTheRowFirst),
        frozenset(
            {
                "test_i12_a_failed_put_moves_neither_record_nor_row",
            }
        ),
    ),
    Broken(
        "record not atomic",
        claiming(records_later),
        frozenset(
            {
                "test_i12_after_a_failed_claim_the_rows_are_still_due",
            }
        ),
    ),
    Broken(
        "fires twice",
        claiming(fires_twice),
        frozenset(
            {
                "test_a01_a_row_that_is_set_back_far_loses_no_time_that_is_new",
                "test_a01_a_row_that_is_set_back_into_a_range_fires_nothing_of_it",
                "test_a01_what_is_new_under_a_range_fires_on_time",
                "test_j10_what_left_fires_no_more_though_its_row_is_set_back",
                "test_j13_a_row_that_is_set_back_fires_none_of_its_times",
                "test_j13_a_row_that_is_set_back_fires_nothing_twice",
                "test_j13_a_row_that_is_set_back_fires_what_it_had_not_fired",
                "test_j13_a_row_that_was_removed_and_set_back_fires_nothing_twice",
                "test_j13_a_schedule_made_again_fires_nothing_twice",
                "test_j13_what_is_deleted_fires_no_more_even_if_its_row_is_set_back",
                "test_j13_what_was_poisoned_is_done_with_and_so_is_what_lies_before_it",
            }
        ),
    ),
    Broken(
        "wall clock",
        claiming(reads_the_wall_clock),
        frozenset(
            {
                "test_a03_a_plan_tells_what_the_history_has",
                "test_i14_the_next_time_follows_the_now_that_was_passed",
                "test_j10_what_a_purge_deleted_may_have_fired_so_it_is_not_missing",
            }
        ),
    ),
    Broken(
        "page two of a claim not read",
        sql("claim_select", "LIMIT :limit", "LIMIT min(:limit, 100)"),
        frozenset(
            {
                "test_i15_one_claim_takes_several_hundred_when_asked",
            }
        ),
    ),
    Broken(
        "page two of a list not read",
        schedules(OnePageOnly),
        frozenset(
            {
                "test_k01_no_list_of_schedules_has_a_job",
                "test_l01_the_pages_of_a_state_have_each_of_it_once",
                "test_m01_a_page_can_begin_after_a_hostile_id",
                "test_m01_pages_hold_every_schedule_once",
            }
        ),
    ),
    Broken(
        "shard forgotten",
        sql("claim_select", "WHERE", "WHERE i.key NOT LIKE '%277' AND"),
        frozenset(
            {
                "test_i15_claiming_goes_on_until_several_hundred_are_done",
                "test_i15_one_claim_takes_several_hundred_when_asked",
            }
        ),
    ),
)

CHANGES = (
    Broken(
        "mark not brought back",
        sql("index_put", "mark = excluded.mark", MARK_KEPT),
        frozenset(
            {
                "test_a01_a_change_of_timing_under_a_range_loses_no_time_that_is_new",
                "test_a01_a_second_change_under_a_range_loses_and_doubles_no_time",
                "test_a01_an_edit_ahead_loses_no_time_that_is_new",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
                "test_a01_what_ended_by_a_clock_ahead_is_made_by_nobody_again",
                "test_a01_what_is_new_under_a_range_fires_on_time",
            }
        ),
    ),
    Broken(
        "range over what was claimed",
        sql("occurrences_within", "o.origin = 'schedule'", "o.origin = ''"),
        frozenset(
            {
                "test_a01_a_pause_after_a_change_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_pause_ahead_counts_no_time_twice",
                "test_a01_a_pause_that_is_edited_ahead_loses_no_time_that_is_new",
                "test_a01_a_pause_that_is_edited_under_a_range_loses_no_time_that_is_new",
                "test_a01_a_pause_with_an_end_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_pause_with_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_pause_without_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_schedule_made_again_under_a_range_loses_and_doubles_no_time",
                "test_a01_a_second_change_under_a_range_loses_and_doubles_no_time",
                "test_a01_an_edit_that_pauses_too_loses_no_time_that_is_new",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_a_caller_brought",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
                "test_a01_what_ended_by_a_clock_ahead_is_made_by_nobody_again",
                "test_a01_what_is_due_at_the_last_run_leaves_out_that_run",
                "test_a01_where_everything_is_missed_it_leaves_out_what_a_caller_brought",
                "test_j05_a_ring_makes_no_time_that_a_caller_brought",
                "test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range",
            }
        ),
    ),
    Broken(
        "mark brought back into a range",
        sql("ranges_beyond", "o.range_end > :at", "o.range_end < 0"),
        frozenset(
            {
                "test_a01_a_change_far_behind_takes_effect_later_and_divides_little",
                "test_a01_a_pause_that_is_edited_under_a_range_loses_no_time_that_is_new",
                "test_a01_a_pause_with_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_pause_without_an_end_counts_nothing_that_a_range_holds",
                "test_a01_a_schedule_made_again_under_a_range_loses_and_doubles_no_time",
                "test_a01_a_second_change_under_a_range_loses_and_doubles_no_time",
                "test_a01_what_is_new_under_a_range_fires_on_time",
                "test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range",
            }
        ),
    ),
    Broken(
        "keeps the operations about who is erased",
        erasing_all_but("operations"),
        frozenset({"test_o01_an_erased_user_is_in_no_operation"}),
    ),
    Broken(
        "keeps the standing orders about who is erased",
        sql("erase_standing_orders", "name >= :first", "name >= :first AND 1 = 0"),
        frozenset(
            {
                "test_a03_an_erased_user_takes_it_along",
                "test_o02_an_erased_user_takes_along_the_pauses_of_that_user_alone",
                "test_o02_an_order_that_is_erased_is_not_written_again",
                "test_o02_the_orders_about_the_user_go_too",
                "test_o03_an_erased_user_takes_along_the_limit_of_that_user_alone",
            }
        ),
    ),
    Broken(
        "writes the outcome of an operation again",
        sql("operation_end", " AND outcome = 'begun'", ""),
        frozenset({"test_o01_an_outcome_is_written_once"}),
    ),
    Broken(
        "erases what is seen at once",
        erasing_all_but("unreadable", "marks", "definitions", "caller_keys", "events"),
        frozenset(
            {
                "test_a_callers_key_goes_too",
                "test_j07_a_user_is_erased_with_what_operators_changed",
                "test_rows_without_a_record_go_too",
                "test_traces_go_too",
                "test_what_had_fired_is_not_known_any_more",
                "test_what_was_defined_is_not_known_any_more",
            }
        ),
    ),
    Broken(
        "a run by hand hides a range",
        sql("occurrence_up_to", "AND o.origin = 'schedule'", ""),
        frozenset(
            {
                "test_a02_it_accounts_for_times_that_the_ledger_has_no_outcome_of",
                "test_a03_verify_counts_none_of_them_and_explain_tells_of_them",
                "test_j13_a_run_by_hand_within_a_range_hides_it_from_no_caller",
            }
        ),
    ),
    Broken(
        "keeps the body of what is discarded",
        sql("body_put", "SET body = :body", "SET body = coalesce(:body, body)"),
        frozenset({"test_o01_a_discarded_occurrence_has_no_body"}),
    ),
    Broken(
        "gives one call the body of another",
        sql("body_get", "AND o.origin = :origin", "AND o.body IS NOT NULL"),
        frozenset(
            {
                "test_g08_what_a_caller_sends_is_kept_for_its_own_occurrence",
            }
        ),
    ),
    Broken(
        "repeat before quota",
        schedules(AsksForTheRepeatFirst),
        frozenset(
            {
                "test_a_repeat_where_no_room_is_left_is_one_too_many",
            }
        ),
    ),
    Broken(
        "brought into a range",
        sql("occurrence_up_to", "o.origin = 'schedule'", "o.origin = ''"),
        frozenset(
            {
                "test_a02_a_time_of_a_range_is_explained_by_the_range",
                "test_j09_the_times_of_an_unreadable_row_are_a_misfire_once_it_is_mended",
                "test_j13_a_run_by_hand_within_a_range_hides_it_from_no_caller",
                "test_j13_a_time_that_a_range_accounts_for_is_brought_by_nobody",
                "test_o02_a_mended_row_fires_no_time_of_a_pause_that_stands_no_more",
            }
        ),
    ),
)

DATABASES = (
    Broken(
        "missing schema reads as empty",
        session(ReadsAsEmpty),
        frozenset(
            {
                "test_i10_an_unmigrated_store_works_when_it_is_migrated",
                "test_i10_whatever_is_asked_of_an_unmigrated_store_it_says_so",
            }
        ),
    ),
    Broken(
        "outage reads as empty",
        works_from_memory,
        frozenset(
            {
                "test_i12_whatever_is_asked_of_an_unreachable_store_it_says_so",
            }
        ),
    ),
)

BROKEN = (*CLAIMS, *FAIRNESS, *CHANGES, *LEDGERS, *DATABASES, *PURGES, *LIMITS, *JOBS, *FORECASTS)
