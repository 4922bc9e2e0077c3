"""The rules of an import: they name the flow, the action, the input and the user of each item."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from duetick.cli.problem import CliProblem
from duetick.cli.transfer.items import RefusedItem, SourceItem, key_of
from duetick.core.wire import require_object
from duetick.domain.errors import InvalidSchedule, kind_of
from duetick.domain.schedule import Json

PLACE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
FIELDS: Final = frozenset({"key", "user", "flow", "action", "input", "policies", "labels"})
SKIP: Final = "skip"
NO_RULE: Final = "no rule says which action it runs"
ADD_RULE: Final = "--flow and --action for all, or a rule in --rules FILE that matches it"

Facts = Mapping[str, Json]


class NoSuchFact(Exception):
    """A template names a fact that the item does not have."""


@dataclass(frozen=True, slots=True)
class MappingRule:
    """The flow and action of items that match. Each pattern of `match` is found in a fact of
    the item; its named groups are facts of the item too.
    """

    match: Mapping[str, re.Pattern[str]]
    fields: Mapping[str, Json]
    skips: bool = False

    def facts_of(self, item: SourceItem) -> Facts | None:
        """Return the facts of an item that matches, or None."""
        facts: dict[str, Json] = {"name": item.name, **item.facts}
        for name, pattern in self.match.items():
            found = pattern.search(as_text(facts.get(name)))
            if found is None:
                return None
            facts |= found.groupdict()
        return facts


@dataclass(frozen=True, slots=True)
class MappedSchedule:
    """A schedule that an item becomes: its user (none: the caller's own), key and definition."""

    item: SourceItem
    user: str | None
    key: str
    definition: Mapping[str, Json]

    @property
    def name(self) -> tuple[str | None, str]:
        """The user and the key."""
        return self.user, self.key


@dataclass(frozen=True, slots=True)
class MappingRules:
    """The rules. The first that matches an item counts. `prefix` stands before each key.

    If a rule names no policies or labels, all schedules have these.
    """

    rules: Sequence[MappingRule]
    prefix: str = ""
    policies: Mapping[str, Json] | None = None
    labels: Mapping[str, Json] = field(default_factory=dict)

    def apply(self, item: SourceItem) -> MappedSchedule | RefusedItem | None:
        """Return the schedule that an item becomes; None if a rule skips it."""
        for rule in self.rules:
            facts = rule.facts_of(item)
            if facts is not None:
                return None if rule.skips else self._fill(item, rule.fields, facts)
        return self._fill(item, {}, {})

    def _fill(
        self, item: SourceItem, fields: Mapping[str, Json], facts: Facts
    ) -> MappedSchedule | RefusedItem:
        try:
            named = {name: fill(value, facts) for name, value in fields.items()}
        except NoSuchFact as problem:
            known = ", ".join(sorted(facts))
            why = f"its rule names {{{problem}}}, which it does not have"
            return RefusedItem(item.place, item.text, why, f"one of {known}")
        whole = {**item.given, **named}
        if not whole.get("flow") or not whole.get("action"):
            return RefusedItem(item.place, item.text, NO_RULE, ADD_RULE)
        user = whole.pop("user", None)
        owner = None if user is None else as_text(user)
        key = key_of(f"{self.prefix}{as_text(whole.pop('key', item.name))}", owner or "")
        return MappedSchedule(item, owner, key, self._definition(item, whole))

    def _definition(self, item: SourceItem, fields: Mapping[str, Json]) -> dict[str, Json]:
        chosen = {**_object(self.policies), **_object(fields.get("policies"))}
        policies = {**item.timing.policies, **chosen}
        left = {name for name, value in chosen.items() if value is None}
        definition: dict[str, Json] = {
            "cron": item.timing.cron,
            "timezone": item.timing.timezone,
            **fields,
            "policies": {name: policies[name] for name in policies if name not in left} or None,
            "labels": {**self.labels, **_object(fields.get("labels"))} or None,
        }
        if not item.timing.enabled:
            definition["enabled"] = False
        return {name: value for name, value in definition.items() if value is not None}


def _object(value: object) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def fill(value: Json, facts: Facts) -> Json:
    """Return a value with its places filled. A text that is one place only becomes the fact."""
    if isinstance(value, dict):
        return {name: fill(inner, facts) for name, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, facts) for inner in value]
    if not isinstance(value, str):
        return value
    alone = PLACE.fullmatch(value)
    if alone:
        return _fact(alone[1], facts)
    return PLACE.sub(lambda found: as_text(_fact(found[1], facts)), value)


def _fact(name: str, facts: Facts) -> Json:
    if name not in facts:
        raise NoSuchFact(name)
    return facts[name]


def as_text(value: Json) -> str:
    """Return a fact as text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_rules(path: Path) -> list[MappingRule]:
    """Read the rules of a file, TOML or JSON: a list `rule`, each with `match` and its fields."""
    try:
        text = path.read_text("utf-8")
        read = require_object(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as problem:
        raise CliProblem(f"{path} cannot be read ({problem.strerror}).") from problem
    except (tomllib.TOMLDecodeError, InvalidSchedule, UnicodeDecodeError) as problem:
        kind = "JSON" if path.suffix == ".json" else "TOML (or JSON, if its name ends with .json)"
        raise CliProblem(f"{path} is not {kind}: {problem}") from problem
    listed = read.get("rule")
    if not isinstance(listed, list) or not listed:
        raise CliProblem(
            f"{path} has no rules: each is a table [[rule]] with match and its fields."
        )
    return [_read_rule(f"rule {n} of {path}", one) for n, one in enumerate(listed, 1)]


def _read_rule(place: str, given: object) -> MappingRule:
    if not isinstance(given, dict):
        raise CliProblem(f"{place}: expected a table, got {kind_of(given)}.")
    unknown = given.keys() - FIELDS - {"match", SKIP}
    if unknown:
        known = ", ".join(sorted([*FIELDS, "match", SKIP]))
        raise CliProblem(f"{place}: {', '.join(sorted(unknown))} is not known; known are {known}.")
    match = given.get("match", {})
    if not isinstance(match, dict):
        raise CliProblem(f"{place}: match is a table of facts and patterns.")
    fields = {name: given[name] for name in FIELDS if name in given}
    return MappingRule(dict(_patterns(place, match)), fields, given.get(SKIP) is True)


def _patterns(place: str, match: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str]]]:
    for name, text in match.items():
        try:
            yield name, re.compile(str(text))
        except re.error as problem:
            raise CliProblem(
                f"{place}: the pattern {str(text)!r} of {name} cannot be read: {problem}."
            ) from problem
