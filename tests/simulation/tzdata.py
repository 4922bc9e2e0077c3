"""Another tzdata in the midst of a story: zones get other rules, for every process at one instant.

New rules agree with the old ones up to an instant to come, as those of a country that announces a
change. From then on the clock is ahead or behind, and has no summer time any more.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from struct import pack
from typing import Final, TypeVar
from unittest import mock

from duetick.domain.expression import rules, zones
from duetick.domain.expression.zones import FAR_ZONES, ZONES, Zone, rules_of
from duetick.testing.conformance.samples import HOUR, MINUTE

from tests.conformance.chances import ZONES as NAMES

SHIFTS: Final = (HOUR, -HOUR, 30 * MINUTE)
"""How far a clock moves where new rules begin."""

K = TypeVar("K")
V = TypeVar("V")


class Tzdata:
    """The rules of zones in one story.

    They changed at `renewed_at`, and differ from the old ones from `since` on; None as long as they
    are those of the package.
    """

    def __init__(self) -> None:
        self.renewed_at: int | None = None
        self.since: int | None = None
        self.before: Mapping[str, str] = {}
        self._rules: dict[str, bytes] = {}
        self._package = zones._data

    def read(self, path: str) -> bytes:
        """Return a file as the tzdata of the moment has it."""
        return self._rules.get(path) or self._package(path)

    def zones(self, name: str) -> tuple[str, str]:
        """Return the names that stand for a zone's present rules, and for the rules before them."""
        return name, self.before.get(name, name)

    def renew(self, now: int, since: int, shift: int) -> None:
        """Give each zone of the stories other rules from an instant on."""
        self.before = {one: rules.learn(rules_of(one)) for one in NAMES if one}
        for name in self.before:
            self._rules[f"zoneinfo/{name}"] = _changed(ZONES[name], since, shift)
            for cache in (ZONES, FAR_ZONES, rules._digests):
                cache.pop(name, None)
        self.renewed_at, self.since = now, since


@contextmanager
def package_at_first() -> Iterator[Tzdata]:
    """Begin with the rules of the package, and end with them."""
    tzdata, caches = Tzdata(), (_restored(ZONES), _restored(FAR_ZONES), _restored(rules._digests))
    with mock.patch.object(zones, "_data", tzdata.read), caches[0], caches[1], caches[2]:
        yield tzdata


@contextmanager
def _restored(cache: dict[K, V]) -> Iterator[None]:
    before = dict(cache)
    try:
        yield
    finally:
        cache.clear()
        cache.update(before)


def _changed(zone: Zone, since: int, shift: int) -> bytes:
    """Return a zone's rules up to an instant, with another offset from then on, as a TZif file."""
    kept = [(at, zone.offsets[place + 1]) for place, at in enumerate(zone.starts) if at < since]
    points = [*kept, (since, (kept[-1][1] if kept else zone.offsets[0]) + shift)]
    offsets = [zone.offsets[0], *(offset for _, offset in points)]
    kinds = sorted(set(offsets), key=offsets.index)
    counts = 0, 0, 0, len(points), len(kinds), 4
    head = b"TZif2" + bytes(15)
    return b"".join(
        (
            *(head, pack(">6l", 0, 0, 0, 0, 0, 0), head, pack(">6l", *counts)),
            *(pack(">q", at // 1_000) for at, _ in points),
            *(pack("B", kinds.index(offset)) for _, offset in points),
            *(pack(">lBB", offset // 1_000, 0, 0) for offset in kinds),
            b"-00\0\n\n",
        )
    )
