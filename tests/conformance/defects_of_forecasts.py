"""Broken stores that tell a forecast wrong numbers, each with the tests that have to notice it."""

from tests.conformance.broken import Broken
from tests.conformance.broken_stores import sql

FORECASTS = (
    Broken(
        "a part of a forecast lacks its last row",
        sql("alike_rows", "<= (:last_user, :last_key)", "< (:last_user, :last_key)"),
        frozenset(
            {
                "test_a_limit_of_runs_tells_how_many_are_spent",
                "test_a_rate_that_was_set_back_tells_its_anchor",
                "test_a_row_that_is_due_after_the_span_is_told",
                "test_a_row_that_is_due_is_told_with_its_time",
                "test_a_selection_narrows_rows_jobs_and_what_cannot_be_read",
                "test_each_row_is_told_in_one_part",
                "test_rows_that_cannot_be_read_are_counted_beside_the_others",
                "test_rows_that_fire_alike_are_told_by_their_number",
                "test_rows_with_a_spread_tell_their_names",
                "test_users_and_actions_are_told_only_where_they_are_asked_for",
                "test_the_second_of_a_single_time_is_told",
            }
        ),
    ),
    Broken(
        "what runs is forecast as what waits",
        sql(
            "waiting_alike", "('scheduled', 'retrying')", "('scheduled', 'retrying', 'processing')"
        ),
        frozenset(
            {
                "test_what_is_under_way_or_has_ended_does_not_wait",
            }
        ),
    ),
    Broken(
        "runs that wait to begin are not spent",
        sql("alike_rows", "AND o.attempts = 0 AND NOT", "AND o.attempts = 99 AND NOT"),
        frozenset(
            {
                "test_a_limit_of_runs_tells_how_many_are_spent",
            }
        ),
    ),
    Broken(
        "a spread without names",
        sql("alike_rows", "'%\"spread\":%' THEN 1", "'%\"spread\":%' THEN 0"),
        frozenset(
            {
                "test_rows_with_a_spread_tell_their_names",
            }
        ),
    ),
    Broken(
        "unreadable rows are in no forecast",
        sql("unreadable_count", "FROM unreadable u)", "FROM unreadable u WHERE u.user_id = '')"),
        frozenset(
            {
                "test_a_selection_narrows_rows_jobs_and_what_cannot_be_read",
                "test_rows_that_cannot_be_read_are_counted_beside_the_others",
            }
        ),
    ),
    Broken(
        "a retry is forecast as if a pause cancelled it",
        sql("waiting_alike", "o.attempts > 0 OR", "o.attempts > 99 OR"),
        frozenset(
            {
                "test_what_waits_is_told_with_what_a_pause_would_do_to_it",
            }
        ),
    ),
    Broken(
        "a forecast of a flow has those of all",
        sql("alike_rows", "r.flow = coalesce(:flow, r.flow)", ":flow IS NULL OR 1 = 1"),
        frozenset(
            {
                "test_a_selection_narrows_rows_jobs_and_what_cannot_be_read",
            }
        ),
    ),
    Broken(
        "a rate that was set back keeps its phase",
        sql(
            "alike_rows",
            "AND i.redefined_at = 0 THEN i.anchor",
            "AND i.redefined_at = -1 THEN i.anchor",
        ),
        frozenset(
            {
                "test_a_rate_that_was_set_back_tells_its_anchor",
            }
        ),
    ),
)
