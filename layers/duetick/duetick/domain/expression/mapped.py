"""Day maps as JSON has them (G-05). A tick reads texts alone, so it never loads this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from duetick.domain.errors import Flaw, kind_of
from duetick.domain.expression.daymap import (
    DAYS,
    DayTimes,
    check_target,
    day_map_of,
    day_named,
    enable,
    refusal,
)
from duetick.domain.expression.errors import InvalidExpression

BESIDE = "has a time beside targets; give it to one of them"


def day_map_text(mapping: Mapping[str, object]) -> str:
    """Write {"mon": "09:00", "tuesday": None}, or such a mapping for each target, as days(…).

    A day is enabled if its time is a string; {"time": "09:00"} may stand for the time. Raises
    InvalidExpression, with a flaw for each day and each target that is wrong.
    """
    if not isinstance(mapping, Mapping):
        raise refusal(kind_of(mapping), "is no mapping of days to times")
    reading = _Reading()
    reading.read(mapping)
    if reading.flaws:
        raise InvalidExpression.of(reading.flaws)
    return day_map_of(reading.maps)


class _Reading:
    """The maps of the targets, as far as they can be read, and the faults of the others."""

    def __init__(self) -> None:
        self.maps: Final[dict[str, DayTimes]] = {}
        self.flaws: Final[list[Flaw]] = []

    def read(self, mapping: Mapping[str, object]) -> None:
        """Read a day map. If any value is a target's map, the day map is one of targets."""
        targets = {name: days for name, days in mapping.items() if _is_target(name, days)}
        if not targets:
            self._read_days((), mapping, self.maps.setdefault("", {}))
        for name, value in mapping.items():
            if name in targets and isinstance(value, Mapping):
                self._read_target(name, value)
            elif targets and isinstance(_time_of(value), str):
                self._add(refusal(str(name), BESIDE), (str(name),))

    def _read_target(self, name: str, days: Mapping[str, object]) -> None:
        try:
            check_target(name)
        except InvalidExpression as problem:
            self._add(problem, (str(name),))
        self._read_days((str(name),), days, self.maps.setdefault(name, {}))

    def _read_days(
        self, place: tuple[str, ...], times: Mapping[str, object], days: DayTimes
    ) -> None:
        for day, given in times.items():
            time = _time_of(given)
            if isinstance(time, str):
                try:
                    enable(days, str(day), time)
                except InvalidExpression as problem:
                    self._add(problem, (*place, str(day)))

    def _add(self, problem: InvalidExpression, place: tuple[str, ...]) -> None:
        self.flaws.append(Flaw(("cron", *place), problem.code, str(problem)))


def _is_target(name: object, value: object) -> bool:
    """Return True if the value is the day map of a target, and not the time of a day."""
    if not isinstance(value, Mapping):
        return False
    return not (isinstance(name, str) and day_named(name) in DAYS and "time" in value)


def _time_of(given: object) -> object:
    return given.get("time") if isinstance(given, Mapping) else given
