"""Broken stores that take a user's occurrences before their turn, or too many of them."""

import json
from collections.abc import Sequence

from duetick.domain.occurrence import Occurrence
from duetick.domain.paging import place_of
from duetick.domain.states import State
from duetick.ports import EVERYBODY, Chunk, Fair, Query
from duetick.stores.sql.claim import leave_out_param
from duetick.stores.sql.session import Params, Row, Session

from tests.conformance.broken import AlteredShelf, Broken
from tests.conformance.broken_stores import claim, claiming, shelf, sql
from tests.conformance.meddled import Meddled

NEWEST = place_of(None)


class IgnoresShares(AlteredShelf):
    """A claim and a lease take everything of every user."""

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        return super().claim(now, limit, ahead, fair._replace(share=None))

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        return super().lease(now, limit, ahead, fair._replace(share=None))


class AlwaysShares(AlteredShelf):
    """A share limits a user also where everything fits: there, the limit is lowered to it."""

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        return super().claim(now, self.backlog(now + ahead, limit), ahead, fair)

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        waiting = self.find(Query(None, None, frozenset({State.RETRYING}), NEWEST, limit))
        fits = fair.share is not None and waiting
        return super().lease(now, len(waiting) if fits else limit, ahead, fair)


class LeasesTooSoon(AlteredShelf):
    """A tick that goes on takes occurrences that came due, or were released, since it began."""

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        return super().lease(now, limit, ahead, fair._replace(late=0))


class LeavesOutLater(Meddled):
    """A session that selects a chunk first, and leaves users out of it afterwards."""

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        if name != "claim_select":
            return self._session.rows(name, params)
        found = self._session.rows(name, {**params, "leave_out": leave_out_param(EVERYBODY)})
        return [row for row in found if row[0] not in json.loads(str(params["leave_out"]))]


def leaves_out_later(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
    """The rows of users that are left out fill the limit."""
    return claim(LeavesOutLater(session), now, limit, ahead, fair)


FAIRNESS = (
    Broken(
        "users left out are claimed",
        sql("claim_select", "NOT IN (SELECT value", "NOT IN (SELECT ''"),
        frozenset(
            {
                "test_i02_a_user_left_out_may_have_any_name",
                "test_i02_more_rows_of_users_left_out_than_one_page_hide_no_other",
                "test_i02_the_rows_of_users_left_out_stay_due",
                "test_i02_with_users_left_out_a_claim_takes_the_oldest_of_all_others",
                "test_t14_shares_and_users_left_out_lead_to_every_user_in_turn",
                "test_t14_what_comes_due_ahead_is_shared_too",
            }
        ),
    ),
    Broken(
        "users left out fill the limit",
        claiming(leaves_out_later),
        frozenset(
            {
                "test_i02_more_rows_of_users_left_out_than_one_page_hide_no_other",
                "test_i02_with_users_left_out_a_claim_takes_the_oldest_of_all_others",
                "test_t14_shares_and_users_left_out_lead_to_every_user_in_turn",
                "test_t14_what_comes_due_ahead_is_shared_too",
            }
        ),
    ),
    Broken(
        "ended leases of users left out",
        sql("occurrences_lease_over", "NOT IN (SELECT value", "NOT IN (SELECT ''"),
        frozenset(
            {
                "test_t14_ended_leases_of_users_left_out_stay",
            }
        ),
    ),
    Broken(
        "retries of users left out",
        sql("occurrences_due", "NOT IN (SELECT value", "NOT IN (SELECT ''"),
        frozenset(
            {
                "test_t14_a_share_leaves_places_for_others",
                "test_t14_a_user_whose_retries_stay_may_have_any_name",
                "test_t14_retries_of_users_left_out_stay",
            }
        ),
    ),
    Broken(
        "shares ignored",
        shelf(IgnoresShares),
        frozenset(
            {
                "test_t14_a_share_leaves_places_for_others",
                "test_t14_a_claim_takes_no_more_than_a_share_of_each_user",
                "test_t14_no_more_ended_leases_than_a_share_of_each_user_are_taken",
                "test_t14_no_more_retries_than_a_share_of_each_user_are_leased",
                "test_t14_shares_and_users_left_out_lead_to_every_user_in_turn",
                "test_t14_what_comes_due_ahead_is_shared_too",
                "test_t14_what_is_beyond_a_share_stays_due",
            }
        ),
    ),
    Broken(
        "late leases take what is due for less",
        shelf(LeasesTooSoon),
        frozenset({"test_q05_a_late_lease_leaves_what_waits_for_less"}),
    ),
    Broken(
        "shares where everything fits",
        shelf(AlwaysShares),
        frozenset(
            {
                "test_t14_a_share_limits_nothing_where_everything_fits",
                "test_t14_a_share_of_what_waits_limits_nothing_where_everything_fits",
            }
        ),
    ),
)
