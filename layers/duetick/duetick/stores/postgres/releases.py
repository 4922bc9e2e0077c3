"""The functions of the database that each release calls: `migrate` makes them, and drops old ones.

A note names the functions of each release. Those of this code, of the release before, and of each
that was the newest within the last 30 days stay: a process of an old release may run for so long.
A process whose functions are gone sends the queries themselves, and a migration of its release
makes the functions again.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from duetick.domain.policies import DAY
from duetick.stores.postgres.kept import routines
from duetick.stores.sql.session import Session

NOTE: Final = "routines"
KEPT_MS: Final = 30 * DAY * 1_000
"""The time for which the functions of a release stay, after another one took its place."""

ALWAYS_KEPT: Final = 2
"""The releases whose functions stay in any case: this one and the one before."""


class Release(NamedTuple):
    """The functions of one release, and until when it is known to have been the newest."""

    until: int
    names: frozenset[str]


def renew_routines(session: Session) -> None:
    """Make the functions of this code that are missing, and drop those that no release needs.

    Functions of another owner stay: only the owner may drop one.
    """
    own = {one.name: one.made for one in routines().values()}
    there = {name: (call, ours) for name, call, ours in session.rows("routines", {})}
    for name in own.keys() - there.keys():
        session.script(own[name])
    ((now, *_),) = session.rows("clock", {})
    newest = Release(now, frozenset(own))
    kept = [*pick_kept(with_release(_read(session), newest, there.keys()), now)]
    _keep(session, kept)
    needed = frozenset[str]().union(*(one.names for one in kept))
    for call, ours in (there[name] for name in sorted(there.keys() - needed)):
        if ours:
            session.script(f"DROP FUNCTION {call}")


def with_release(
    known: Sequence[Release], newest: Release, there: Collection[str]
) -> Sequence[Release]:
    """Return the releases, the newest first, after one more took the place of the newest.

    Functions that are `there` and that no release names count as another release of unknown age.
    """
    dated = [one._replace(until=newest.until) for one in known[:1]] + [*known[1:]]
    others = [one for one in dated if one.names != newest.names]
    unknown = frozenset(there).difference(newest.names, *(one.names for one in others))
    return [newest, *others, *([Release(newest.until, unknown)] if unknown else ())]


def pick_kept(releases: Sequence[Release], now: int) -> Iterator[Release]:
    """Yield the releases whose functions stay."""
    for place, one in enumerate(releases):
        if place < ALWAYS_KEPT or one.until > now - KEPT_MS:
            yield one


def _read(session: Session) -> Sequence[Release]:
    rows = session.rows("note_get", {"name": NOTE})
    known = json.loads(rows[0][0]) if rows else []
    return [Release(one["until"], frozenset(one["names"])) for one in known]


def _keep(session: Session, releases: Iterable[Release]) -> None:
    body = json.dumps([{"until": one.until, "names": sorted(one.names)} for one in releases])
    session.rows("note_put", {"name": NOTE, "body": body})
