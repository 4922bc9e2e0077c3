"""The times that pauses of groups left out: the ledger has none of them, the history shows them."""

from collections.abc import Collection
from dataclasses import replace

from duetick.domain.accounts import Account, Rules, find_times, stretches
from duetick.domain.firing import Times
from duetick.domain.group_pauses import Pauses
from duetick.domain.occurrence import IndexRow, Missed, Occurrence, range_of
from duetick.domain.ranges import leave_out
from duetick.domain.states import Reason


def list_left_out(account: Account, now: int, rules: Rules, pauses: Pauses) -> list[Occurrence]:
    """Return the times up to now that pauses of groups left out, as ranges that nobody recorded."""
    dated = [(one.since, find_times(one, rules)) for one in account.definitions]
    recorded = {one.nominal_at for one in account.entries}
    found: list[Occurrence] = []
    for one in stretches(account, 0, now, dated, pauses):
        if one.times is None or not one.owed:
            continue
        for first, end in one.holes:
            after, until = max(one.after, first - 1), min(one.until, end - 1)
            found += _range_between(account, one.times, (after, until), recorded)
    return found


def _range_between(
    account: Account, times: Times, span: tuple[int, int], recorded: Collection[int]
) -> list[Occurrence]:
    first, last = times.after(span[0]), times.newest(*span)
    if span[0] >= span[1] or first is None or last is None:
        return []
    definition = account.definitions[-1]
    parts = times.cron, times.timezone, first
    row = IndexRow(account.user_id, account.key, *parts, definition.flow or "", times.anchor)
    missed = Missed(first, last, times.count(*span))
    whole = range_of(replace(row, policies=times.policies), missed, Reason.PAUSED, last)
    return leave_out(whole, recorded)
