"""The catalogue of broken stores, each with the tests of the suite that have to notice it."""

from tests.conformance.broken import Broken
from tests.conformance.broken_stores import (
    CommitsTheRowFirst,
    EmptyTimezone,
    OnePageOnly,
    ReadsThenTakes,
    claiming,
    ends_early,
    erasing_all_but,
    fires_twice,
    index,
    loses_the_advance,
    reads_as_empty,
    reads_the_wall_clock,
    records_later,
    schedules,
    sql,
    starves_behind_poison,
    works_from_memory,
)
from tests.conformance.defects_of_ledgers import LEDGERS

CLAIMS = (
    Broken(
        "double claim",
        index(ReadsThenTakes),
        frozenset({"test_i05_claimers_at_once_get_disjoint_sets_that_are_everything"}),
    ),
    Broken(
        "lost advance",
        claiming(loses_the_advance),
        frozenset(
            {
                "test_a01_a_pause_with_an_end_counts_no_time_that_was_claimed_ahead",
                "test_a01_a_row_that_is_set_back_far_loses_no_time_that_is_new",
                "test_a01_after_downtime_every_time_is_accounted_for",
                "test_a01_each_time_of_a_long_life_has_one_outcome",
                "test_a01_what_a_caller_brings_hides_no_time_before_it",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_a_caller_brought",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
                "test_i02_rows_that_yield_nothing_do_not_end_a_claim",
                "test_i05_claimers_at_once_get_disjoint_sets_that_are_everything",
                "test_i06_a_time_that_is_now_is_not_the_next_one",
                "test_i06_the_next_time_is_the_first_after_now",
                "test_i08_a_timezone_is_heeded",
                "test_i08_an_absent_timezone_means_utc",
                "test_i14_the_next_time_follows_the_now_that_was_passed",
                "test_i15_claiming_goes_on_until_several_hundred_are_done",
                "test_j09_nothing_older_than_the_longest_lateness_fires",
                "test_j09_what_is_collapsed_is_one_row_with_range_and_count",
                "test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range",
                "test_j13_a_row_that_is_set_back_fires_what_it_had_not_fired",
                "test_j13_a_time_that_a_range_accounts_for_is_brought_by_nobody",
                "test_t06_the_next_time_is_the_first_after_the_window",
                "test_t09_an_interval_does_not_drift",
                "test_t10_after_downtime_there_is_one_decision_for_each_schedule",
            }
        ),
    ),
    Broken(
        "due a millisecond early",
        sql("claim_select", "<= :until", "<= :until + 1"),
        frozenset({"test_i02_leaves_what_is_due_a_millisecond_later"}),
    ),
    Broken(
        "due a millisecond late",
        sql("claim_select", "<= :until", "< :until"),
        frozenset(
            {
                "test_i02_leaves_what_is_due_a_millisecond_later",
                "test_i02_takes_what_is_due_at_this_very_millisecond",
            }
        ),
    ),
    Broken(
        "newest first",
        sql("claim_select", "next_fire_at LIMIT", "next_fire_at DESC LIMIT"),
        frozenset(
            {"test_i02_hands_out_the_oldest_first", "test_i02_within_the_limit_the_oldest_go_first"}
        ),
    ),
    Broken(
        "limit ignored",
        sql("claim_select", "LIMIT :limit", "LIMIT 1000 + :limit"),
        frozenset(
            {
                "test_i02_takes_no_more_than_the_limit",
                "test_i02_within_the_limit_the_oldest_go_first",
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
            }
        ),
    ),
    Broken(
        "poison starves",
        claiming(starves_behind_poison),
        frozenset(
            {
                "test_g06_a_poison_row_is_listed_with_its_reason",
                "test_g06_a_poisoned_schedule_tells_its_defect",
                "test_i13_a_change_of_no_time_leaves_a_row_poisoned",
                "test_i13_a_poison_row_leaves_the_due_range",
                "test_i13_a_poison_row_never_delays_a_good_one",
                "test_i13_a_row_that_can_be_read_again_is_restored_with_what_it_missed",
                "test_i13_a_row_that_still_cannot_be_read_is_not_restored",
                "test_i13_a_zone_that_cannot_be_read_is_poison_too",
                "test_i13_more_poison_than_one_page_is_listed",
                "test_i13_poison_without_a_record_is_told_and_left",
                "test_i13_whatever_text_a_row_holds_a_claim_survives_it",
                "test_m03_what_became_unreadable_is_kept_not_indexed_and_reported",
                "test_t01_rows_poisoned_since_a_time_are_told",
                "test_t01_a_claim_tells_of_each_row_that_it_poisons",
                "test_t01_what_was_poisoned_first_is_listed_first",
            }
        ),
    ),
    Broken(
        "empty timezone",
        index(EmptyTimezone),
        frozenset({"test_i08_an_absent_timezone_stays_absent"}),
    ),
    Broken(
        "index drift",
        schedules(CommitsTheRowFirst),
        frozenset({"test_i12_a_failed_put_moves_neither_record_nor_row"}),
    ),
    Broken(
        "record not atomic",
        claiming(records_later),
        frozenset({"test_i12_after_a_failed_claim_the_rows_are_still_due"}),
    ),
    Broken(
        "fires twice",
        claiming(fires_twice),
        frozenset(
            {
                "test_a01_a_row_that_is_set_back_into_a_range_fires_nothing_of_it",
                "test_a01_a_row_that_is_set_back_far_loses_no_time_that_is_new",
                "test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range",
                "test_j13_a_row_that_is_set_back_fires_nothing_twice",
                "test_j13_a_row_that_is_set_back_fires_what_it_had_not_fired",
                "test_j13_a_row_that_was_removed_and_set_back_fires_nothing_twice",
                "test_j13_a_schedule_made_again_fires_nothing_twice",
                "test_j13_what_was_poisoned_is_done_with_and_so_is_what_lies_before_it",
            }
        ),
    ),
    Broken(
        "wall clock",
        claiming(reads_the_wall_clock),
        frozenset({"test_i14_the_next_time_follows_the_now_that_was_passed"}),
    ),
    Broken(
        "page two of a claim not read",
        sql("claim_select", "LIMIT :limit", "LIMIT min(:limit, 100)"),
        frozenset({"test_i15_one_claim_takes_several_hundred_when_asked"}),
    ),
    Broken(
        "page two of a list not read",
        schedules(OnePageOnly),
        frozenset(
            {
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
        sql("index_mark_lower", "fired_through > :timing", "fired_through < 0"),
        frozenset(
            {
                "test_a01_a_pause_after_a_change_counts_no_time_that_was_claimed_ahead",
                "test_a01_an_edit_ahead_loses_no_time_that_is_new",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
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
                "test_a01_a_pause_with_an_end_counts_no_time_that_was_claimed_ahead",
                "test_a01_an_edit_that_pauses_too_loses_no_time_that_is_new",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_a_caller_brought",
                "test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit",
                "test_a01_what_is_due_at_the_last_run_leaves_out_that_run",
            }
        ),
    ),
    Broken(
        "mark brought back into a range",
        sql("ranged_through", "o.range_end > :timing", "o.range_end < 0"),
        frozenset({"test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range"}),
    ),
    Broken(
        "erases what is seen at once",
        erasing_all_but("poisoned", "watermarks", "definitions", "caller_keys", "events"),
        frozenset(
            {
                "test_a_callers_key_goes_too",
                "test_rows_without_a_record_go_too",
                "test_traces_go_too",
                "test_what_had_fired_is_not_known_any_more",
                "test_what_was_defined_is_not_known_any_more",
            }
        ),
    ),
    Broken(
        "brought into a range",
        sql("occurrence_up_to", "o.origin = 'schedule'", "o.origin = ''"),
        frozenset({"test_j13_a_time_that_a_range_accounts_for_is_brought_by_nobody"}),
    ),
)

DATABASES = (
    Broken(
        "missing schema reads as empty",
        reads_as_empty,
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
        frozenset({"test_i12_whatever_is_asked_of_an_unreachable_store_it_says_so"}),
    ),
)

BROKEN = (*CLAIMS, *CHANGES, *LEDGERS, *DATABASES)
