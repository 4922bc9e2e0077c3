"""Begin and settle on Postgres: one round trip each, where the shared ledger makes four or five.

Functions of the database decide what is ordinary (migrations/001_initial.sql). What is rare is left
to the shared ledger: a caller without a fence, a timing that was changed, a limit of
runs, an occurrence that waits, and one that runs with its lease over.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from duetick.domain.policies import LEASE_MARGIN, Policies
from duetick.domain.schedule import Occurrence
from duetick.ports import Begun, CallerKey, Clock, OnLost, Outcome, Refused
from duetick.stores.postgres.errors import InDoubt
from duetick.stores.sql.ledger import CountRun, SqlLedger
from duetick.stores.sql.rows import identity_params, read_begin, read_occurrence, storable
from duetick.stores.sql.session import Database, Params, Row, Value, retried

USUAL: Final = json.dumps(asdict(Policies()) | {"lease_margin": LEASE_MARGIN})


class PostgresLedger(SqlLedger):
    """`ports.Ledger` on Postgres. Without a clock of its own the time is the database's."""

    def __init__(
        self,
        database: Database,
        clock: Clock | None,
        now: Callable[[], int],
        new_id: Callable[[], str],
        count_run: CountRun,
    ) -> None:
        super().__init__(database, now, new_id, count_run)
        self._clock = clock

    def begin(
        self,
        occurrence: Occurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        on_lost: OnLost | None = None,
    ) -> Begun | Refused:
        """See `ports.Ledger`."""
        if not occurrence.fence:
            return super().begin(occurrence, now=now, key=key, on_lost=on_lost)
        try:
            told = self._begin_at_once(occurrence, now)
        except InDoubt as doubt:
            return self._begin_again(occurrence, now, doubt)
        return super().begin(occurrence, now=now, on_lost=on_lost) if told is None else told

    def settle(
        self, occurrence: Occurrence, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        """See `ports.Ledger`; where the answer was lost it is said again, which changes nothing."""
        try:
            return self._settle_at_once(occurrence, outcome, now)
        except InDoubt:
            return super().settle(occurrence, outcome, now=now)

    @retried
    def _begin_at_once(self, occurrence: Occurrence, now: int | None) -> Begun | Refused | None:
        """None where the general way has to decide."""
        row = self._call(
            "occurrence_begin", self._params(occurrence, now) | {"flow": occurrence.flow}
        )
        return None if row[0] == "general" else read_begin(row)

    def _begin_again(
        self, occurrence: Occurrence, now: int | None, doubt: InDoubt
    ) -> Begun | Refused:
        """The fence lets only one begin. If it runs now, nobody knows whether it runs for us."""
        told = super().begin(occurrence, now=now)
        if isinstance(told, Refused) and told.verdict == "in_progress":
            raise doubt
        return told

    @retried
    def _settle_at_once(
        self, occurrence: Occurrence, outcome: Outcome, now: int | None
    ) -> Occurrence | None:
        params: Params = self._params(occurrence, now) | {
            "state": outcome.state,
            "reason": outcome.reason,
            "error": storable(outcome.error),
        }
        row = self._call("occurrence_settle", params)
        return None if row[0] is None else read_occurrence(row)

    def _call(self, name: str, params: Params) -> Row:
        with self._database.transaction() as session:
            return session.last(name, params)()[0]

    def _params(self, occurrence: Occurrence, now: int | None) -> dict[str, Value]:
        at = self._clock() if now is None and self._clock else now
        return identity_params(occurrence) | {
            "fence": occurrence.fence,
            "now": at,
            "usual": USUAL,
        }
