"""The plan of an import: the schedules that its items become, beside those that are here.

Each schedule that an import made has two labels: `import`, the source, and `import-state`, the
digest of its definition as the source had it, with the version that this made here. The labels tell
what has changed since: the source, the schedule here, or both.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from duetick.cli.transfer.items import RefusedItem, Remark, SourceItem, SourcePart, digest
from duetick.cli.transfer.rules import MappedSchedule, MappingRules
from duetick.domain.schedule import Json

SOURCE: Final = "import"
STATE: Final = "import-state"
DIGITS: Final = 16

PutKind: TypeAlias = Literal["new", "changed", "same", "edited"]
"""The effect of an import on a schedule. `new`: it makes it. `changed`: it replaces it, for the
source has changed. `same`: it leaves it. `edited`: it leaves it, for it was changed here and the
source was not.
"""


class Here(NamedTuple):
    """A schedule that an import made, as it is here."""

    user: str | None
    key: str
    version: int
    state: str
    is_paused: bool = False

    @property
    def digest(self) -> str:
        """The digest of the definition that the source had."""
        return self.state.partition("@")[0]

    @property
    def is_edited(self) -> bool:
        """True if the schedule was changed here since."""
        return self.state.partition("@")[2] != str(self.version)


@dataclass(frozen=True, slots=True)
class PlannedPut:
    """A schedule of the plan: its verdict, and the body of its put."""

    wanted: MappedSchedule
    step: PutKind
    body: Mapping[str, Json]
    was_edited: bool = False

    @property
    def writes(self) -> bool:
        """True if it is put."""
        return self.step in ("new", "changed")

    def replace_version(self, version: int) -> "PlannedPut":
        """Return the put that replaces a schedule of another origin than this source."""
        given = self.body["labels"]
        labels: dict[str, Json] = {**given} if isinstance(given, dict) else {}
        labels[STATE] = f"{digest_of(self.wanted.definition)}@{version + 1}"
        return replace(self, body={**self.body, "labels": labels, "ifVersion": version})


@dataclass(slots=True)
class ImportPlan:
    """The effect of an import: a schedule for each item that can be one, and the items left out."""

    planned: list[PlannedPut] = field(default_factory=list)
    refused: list[RefusedItem] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    gone: list[Here] = field(default_factory=list)


def find_known(listed: Iterable[Mapping[str, Any]], source: str) -> Iterator[Here]:
    """Yield the schedules of a list that imports of a source made."""
    for one in listed:
        labels = one.get("labels") or {}
        if labels.get(SOURCE) == source:
            state, paused = labels.get(STATE, ""), one["state"] == "paused"
            yield Here(one.get("user"), one["key"], one["version"], state, paused)


def make_plan(
    found: Iterable[SourcePart],
    rules: MappingRules,
    here: Iterable[Here],
    source: str,
    *,
    user: str | None = None,
) -> ImportPlan:
    """Compare the items with the schedules that are here, all of them of one `user` if given."""
    plan, wanted = ImportPlan(), dict[tuple[str | None, str], MappedSchedule]()
    for item in found:
        one = _apply(item, rules, user)
        if isinstance(one, RefusedItem):
            plan.refused.append(one)
        elif isinstance(one, Remark):
            plan.remarks.append(one)
        elif one.name in wanted:
            plan.refused.append(_refuse_double(one, wanted[one.name]))
        else:
            wanted[one.name] = one
    by_name = {(one.user, one.key): one for one in here}
    for name, one in wanted.items():
        plan.planned.append(_step(one, by_name.pop(name, None), source))
    plan.gone = [*by_name.values()]
    return plan


def _apply(
    item: SourcePart, rules: MappingRules, user: str | None
) -> MappedSchedule | RefusedItem | Remark:
    if not isinstance(item, SourceItem):
        return item
    one = rules.apply(item)
    if one is None:
        return Remark(item.place, item.text, "a rule skips it")
    if isinstance(one, MappedSchedule) and user is not None:
        if one.user not in (None, user):
            why = f"it is a schedule of {one.user}, and this import is for {user}"
            return RefusedItem(item.place, item.text, why, "without --user, as an operator")
        return MappedSchedule(one.item, user, one.key, one.definition)
    return one


def _refuse_double(one: MappedSchedule, first: MappedSchedule) -> RefusedItem:
    why = f"its key {one.key} is that of {first.item.place}"
    return RefusedItem(one.item.place, one.item.text, why, "a key of its own, by a rule")


def _step(wanted: MappedSchedule, found: Here | None, source: str) -> PlannedPut:
    current = digest_of(wanted.definition)
    if found is None:
        return PlannedPut(wanted, "new", _body(wanted, source, f"{current}@1", 0))
    if found.digest == current:
        return PlannedPut(wanted, "edited" if found.is_edited else "same", {})
    body = _body(wanted, source, f"{current}@{found.version + 1}", found.version)
    if found.is_paused and not found.is_edited and "enabled" not in body:
        body["enabled"] = True  # the pause is that of the source, which has ended it
    return PlannedPut(wanted, "changed", body, was_edited=found.is_edited)


def _body(wanted: MappedSchedule, source: str, state: str, version: int) -> dict[str, Json]:
    chosen = wanted.definition.get("labels")
    labels: dict[str, Json] = {**chosen} if isinstance(chosen, dict) else {}
    whose: dict[str, Json] = {} if wanted.user is None else {"user": wanted.user}
    named: dict[str, Json] = {**whose, "key": wanted.key, **wanted.definition}
    return {**named, "ifVersion": version, "labels": {**labels, SOURCE: source, STATE: state}}


def digest_of(definition: Mapping[str, Json]) -> str:
    """Return the digest of a definition: the same for the same fields in any order."""
    return digest(json.dumps(definition, sort_keys=True), DIGITS)
