"""The rules of an import: they name the action, the input and the key of an item."""

from pathlib import Path
from typing import Any

import pytest
from duetick.api.views import ScheduleView
from duetick.cli.problem import CliProblem
from duetick.cli.transfer.items import RefusedItem, SourceItem, Timing, key_of
from duetick.cli.transfer.rules import MappedSchedule, MappingRule, MappingRules, read_rules
from duetick.cli.transfer.tables import NAMES, SHOWN
from duetick.domain.identity import check_schedule_key

ITEM = SourceItem(
    "crontab:3",
    "0 9 * * * /opt/backup web",
    "backup-1",
    Timing("0 9 * * *", "Europe/Berlin", {"gap": "skip"}),
    {"command": "/opt/backup web", "data": {"a": [1]}, "count": 3},
)
RULES = """
[[rule]]
match = { command = '^/opt/(?P<tool>\\w+) (?P<host>\\w+)$', name = "backup" }
flow = "ops"
action = "{tool}"
user = "{host}"
key = "{tool}/{host}"
input = { host = "{host}", all = "{data}", told = "{count} of {data}" }
policies = { overlap = "allow", gap = "run" }
labels = { tool = "{tool}" }

[[rule]]
match = { command = "^/bin/true" }
skip = true
"""


def rules(tmp_path: Path, text: str = RULES, name: str = "rules.toml") -> list[MappingRule]:
    """Return the rules of a file."""
    (tmp_path / name).write_text(text)
    return read_rules(tmp_path / name)


def mapped(found: object) -> MappedSchedule:
    assert isinstance(found, MappedSchedule), found
    return found


def test_a_rule_fills_its_fields_with_facts_and_groups(tmp_path: Path) -> None:
    found = mapped(MappingRules(rules(tmp_path), labels={"by": "me"}).apply(ITEM))
    assert (found.user, found.key) == ("web", "backup/web")
    assert found.definition == {
        "cron": "0 9 * * *",
        "timezone": "Europe/Berlin",
        "flow": "ops",
        "action": "backup",
        "input": {"host": "web", "all": {"a": [1]}, "told": '3 of {"a": [1]}'},
        "policies": {"gap": "run", "overlap": "allow"},
        "labels": {"by": "me", "tool": "backup"},
    }


def test_the_first_rule_that_matches_counts_and_one_may_skip(tmp_path: Path) -> None:
    listed = rules(tmp_path)
    other = SourceItem("c:1", "", "x", ITEM.timing, {"command": "/bin/true"})
    assert MappingRules(listed).apply(other) is None
    third = SourceItem("c:1", "", "x", ITEM.timing, {"command": "else"})
    assert isinstance(MappingRules(listed).apply(third), RefusedItem)
    last = MappingRule({}, {"flow": "f", "action": "a"})
    assert mapped(MappingRules([*listed, last]).apply(third)).definition["flow"] == "f"


def test_an_item_that_no_rule_takes_is_refused_and_says_what_to_write() -> None:
    found = MappingRules([]).apply(ITEM)
    assert isinstance(found, RefusedItem)
    assert "--flow and --action" in found.instead


def test_a_rule_that_names_what_is_not_known_is_told_what_is() -> None:
    rule = MappingRule({}, {"flow": "f", "action": "a", "input": "{nothing}"})
    found = MappingRules([rule]).apply(ITEM)
    assert isinstance(found, RefusedItem)
    assert "{nothing}" in found.why
    assert "command" in found.instead


def test_policies_of_all_stand_behind_those_of_a_rule_and_null_takes_one_back() -> None:
    fields: dict[str, Any] = {"flow": "f", "action": "a", "policies": {"spread": 60}}
    given = MappingRules([MappingRule({}, fields)], policies={"gap": None, "spread": 5})
    assert mapped(given.apply(ITEM)).definition["policies"] == {"spread": 60}


@pytest.mark.parametrize("name", ["a/b", "x", "Ä ö", "reports.2026", "100%"])
def test_a_name_that_can_be_a_key_is_the_key(name: str) -> None:
    assert key_of(name, "ann") == name


@pytest.mark.parametrize("name", ["", "a//b", "..", "x" * 200, "a\nb", "job:1", "\ud800"])
def test_any_other_name_becomes_a_key_of_its_own(name: str) -> None:
    found = key_of(name, "ann")
    check_schedule_key("ann", found)
    assert found == key_of(name, "ann")
    assert found != key_of(f"{name}!", "ann")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rules"),
        ("rule = 5", "has no rules"),
        ("[[rule]]\nflows = 'x'", "rule 1 of .*flows is not known"),
        ("[[rule]]\nmatch = 'x'", "match is a table"),
        ("[[rule]]\nmatch = { command = '(' }", "pattern '\\(' of command"),
        ("[[rule]\n", "is not TOML"),
    ],
)
def test_a_file_of_rules_that_is_wrong_says_where(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CliProblem, match=said):
        rules(tmp_path, text)


def test_rules_may_be_json(tmp_path: Path) -> None:
    text = '{"rule": [{"flow": "f", "action": "a"}]}'
    found = mapped(MappingRules(rules(tmp_path, text, "rules.json")).apply(ITEM))
    assert found.definition["action"] == "a"
    with pytest.raises(CliProblem, match="is not JSON"):
        rules(tmp_path, "{", "rules.json")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CliProblem, match=r"none\.toml cannot be read \(No such file"):
        read_rules(tmp_path / "none.toml")


def test_an_import_knows_each_field_that_the_api_shows() -> None:
    """So it can read a list that the API wrote."""
    assert set(ScheduleView.__annotations__) == {*NAMES, *SHOWN}
