"""A schedule to write in another scheduler's form, and the losses in that form."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from duetick.cli.transfer.plan import SOURCE, STATE
from duetick.core.wire import policies_json
from duetick.domain.expression import count
from duetick.domain.expression.parts import CannotSay
from duetick.domain.policies import Policies
from duetick.domain.schedule import Json

USUAL: Final[Mapping[str, Json]] = policies_json(Policies())
WITHHELD: Final = "[withheld]"
LOOKED_AT: Final = 3 * 366 * 86_400_000
"""The time in which clock changes are looked for."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A schedule as the API shows it, with its user if an operator asks."""

    user: str | None
    view: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The key."""
        return str(self.view["key"])

    @property
    def name(self) -> str:
        """The key, behind the user if there is one."""
        return f"{self.user}/{self.key}" if self.user else self.key

    @property
    def cron(self) -> str:
        """The expression."""
        return str(self.view["cron"])

    @property
    def zone(self) -> str:
        """The time zone."""
        return str(self.view["timezone"] or "UTC")

    @property
    def policies(self) -> Mapping[str, Any]:
        """The policies that are not Duetick's own defaults."""
        given: Mapping[str, Any] = self.view["policies"]
        return {name: value for name, value in given.items() if value != USUAL[name]}

    @property
    def input_text(self) -> str:
        """The input as JSON."""
        return json.dumps(self.view["input"], ensure_ascii=False)

    @property
    def facts(self) -> dict[str, Json]:
        """The facts that a template may name."""
        view = self.view
        named: dict[str, Json] = {name: view[name] for name in ("key", "flow", "action", "input")}
        return {**named, "user": self.user or ""}

    def without(self, said: Iterable[str]) -> list[str]:
        """Return the policies that a form leaves out: all but the `said` ones."""
        return sorted(self.policies.keys() - set(said))


TellLoss: TypeAlias = Callable[[Exported, str], None]
"""A function that hears what a form cannot say of a schedule."""

T = TypeVar("T")

Write: TypeAlias = Callable[[list[Exported], TellLoss], Iterator[str]]
"""A function that yields the lines of schedules in a form."""


def definition(one: Exported) -> dict[str, Json]:
    """Return the fields of a schedule that an import takes: its definition and its user.

    It has every policy: its action may have other defaults than Duetick.
    """
    view = one.view
    labels = {name: text for name, text in view["labels"].items() if name not in (SOURCE, STATE)}
    whole: dict[str, Json] = {
        "user": one.user,
        **{name: view[name] for name in ("key", "cron", "timezone", "flow", "action", "input")},
        "enabled": None if view["enabled"] else False,
        "policies": view["policies"],
        "labels": labels or None,
        "externalId": view["externalId"],
        "principal": view.get("principal"),
    }
    return {name: value for name, value in whole.items() if value is not None}


def time_each(
    schedules: Iterable[Exported],
    tell: TellLoss,
    times_of: Callable[[Exported], T],
    whose: str,
    said: Iterable[str],
) -> Iterator[tuple[Exported, T]]:
    """Yield each schedule whose times a form can say, with its times in that form.

    `tell` hears of the other schedules, and of policies beyond those that the form has `said`.
    """
    for one in schedules:
        try:
            times = times_of(one)
        except CannotSay as problem:
            tell(one, f"left out: {problem}")
            continue
        if without := one.without(said):
            tell(one, f"{whose} has no {', '.join(without)}")
        yield one, times


def tell_clocks(one: Exported, tell: TellLoss, whose: str, now: int) -> None:
    """Tell of a schedule with a time that clock changes skip or repeat: others have other rules."""
    if one.zone == "UTC" or one.cron.startswith(("rate(", "at(")):
        return
    cron, zone, end = one.cron, one.zone, now + LOOKED_AT
    usual = count(cron, zone, now, end)
    skipped = count(cron, zone, now, end, gap="skip")
    if usual != skipped or usual != count(cron, zone, now, end, repeat="both"):
        tell(one, f"where a clock change skips or repeats one of its times, {whose} decides")


def tell_end_of_pause(one: Exported, tell: TellLoss) -> None:
    """Tell of a pause that ends by itself: no form has its end."""
    pause = one.view["paused"]
    if pause and pause["until"]:
        tell(one, f"its pause ends at {pause['until']}, and no form says that: resume it then")


def tell_withheld(one: Exported, tell: TellLoss) -> None:
    """Tell that an input has secrets, which an operator does not read."""
    if WITHHELD in one.input_text:
        tell(one, "its input holds secrets, which an operator does not read: they are withheld")
