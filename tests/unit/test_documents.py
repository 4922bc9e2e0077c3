"""The READMEs agree with the code: each of their tables, paths and links is compared."""

import json
import re
from dataclasses import fields
from importlib import import_module
from inspect import signature
from typing import get_args, get_type_hints

import pytest
from duetick import actions
from duetick.api.agents.tools import TOOLS
from duetick.api.models import NewSchedule, PoliciesShape, RetryShape
from duetick.api.routes import ROUTES
from duetick.api.views import OccurrenceView, ScheduleView
from duetick.cli.transfer.formats import FORMATS
from duetick.core import answers
from duetick.core.agents import AgentSchedules
from duetick.core.context import Context
from duetick.core.dispatch import ResolveContext
from duetick.core.flows import Flow
from duetick.core.notices import TITLES, Notice, notice_json
from duetick.core.tick import TickReport
from duetick.core.wire import camel
from duetick.domain import errors
from duetick.domain.codes import Code
from duetick.domain.occurrence import Occurrence
from duetick.domain.policies import LEASE_MARGIN, Policies, Retry
from duetick.domain.schedule import Record
from duetick.domain.states import REASONS, TRANSITIONS, State
from duetick.domain.verdicts import Verdict
from duetick.ports import Shelf
from duetick.testing import Capability, StoreConformance

from tests.documents import (
    ADDERS,
    AUTHORS,
    DEVELOPERS,
    EVERYBODY,
    LINK,
    OPERATORS,
    PAGES,
    TOP,
    anchors,
    inline,
    rows,
    section,
)
from tests.template.parsed import template

LONGEST = 250
PACKAGE = TOP / "layers/duetick/duetick"
BESIDE = {
    "POST /api/mcp",
    "GET /api/flows/{flow}/schedules",
    "POST /api/flows/{flow}/schedules/{id}/dispatch",
    "POST /api/schedules/by-external/{key}/dispatch",
}
"""The routes that the API's document does not have."""
SPEAKING = [
    *TOP.glob("functions/*/app.py"),
    *(
        path
        for folder in ("api", "core", "runtime", "stores", "transports")
        for path in (TOP / "layers/duetick/duetick" / folder).rglob("*.py")
    ),
]
"""The modules that write log lines."""
VIEWS = (ScheduleView, OccurrenceView)
TARGETS = set(actions.__all__)
IN_PYTHON = {"settling", "open_schedules", "enqueue_job"}
"""What a context has for itself."""


def test_there_is_a_page_for_each_reader() -> None:
    assert sorted(PAGES) == sorted([EVERYBODY, OPERATORS, AUTHORS, ADDERS, DEVELOPERS])


def test_the_page_for_everybody_is_short() -> None:
    assert len(PAGES[EVERYBODY].splitlines()) <= LONGEST


@pytest.mark.parametrize("page", PAGES)
def test_each_link_leads_somewhere(page: str) -> None:
    for link in LINK.findall(PAGES[page]):
        path, _, place = link.partition("#")
        if path.startswith("https://"):
            continue
        there = ((TOP / page).parent / path).resolve() if path else TOP / page
        assert there.is_file(), link
        assert not place or place in anchors(str(there.relative_to(TOP))), link


@pytest.mark.parametrize("page", PAGES)
def test_each_path_that_is_named_is_there(page: str) -> None:
    for cell in set(inline(PAGES[page])):
        if re.fullmatch(r"(tests|functions|layers|events)/[\w/.]*", cell):
            assert (TOP / cell).exists() or (TOP / cell).name == "garden.py", cell


def test_the_table_of_policies_is_the_code() -> None:
    policies, retry = Policies(), Retry()
    told = {row[0].strip("`"): row for row in rows(section(AUTHORS, "Policies"))}
    assert told.keys() == {one.name for kind in (Policies, Retry) for one in fields(kind)}
    for one in fields(Policies):
        assert inline(told[one.name][1]) == [camel(one.name)]
        _compare_default(told[one.name][2], getattr(policies, one.name))
    for one in fields(Retry):
        assert inline(told[one.name][1]) == [camel(one.name)]
        _compare_default(told[one.name][2], getattr(retry, one.name))
    assert f"the lease is {LEASE_MARGIN} s longer" in told["timeout"][4]


def _compare_default(cell: str, value: object) -> None:
    if isinstance(value, Retry):
        assert cell == "see below"
    else:
        assert cell == ("none" if value is None else f"`{value}`")


@pytest.mark.parametrize("shape", [PoliciesShape, RetryShape])
def test_each_choice_of_a_policy_is_in_the_table(shape: type[PoliciesShape | RetryShape]) -> None:
    told = {row[0].strip("`"): "".join(row) for row in rows(section(AUTHORS, "Policies"))}
    for name, field in shape.model_fields.items():
        for choice in filter(lambda one: isinstance(one, str), get_args(field.annotation)):
            assert f"`{choice}`" in told[name], (name, choice)


def test_the_table_of_the_context_is_the_code() -> None:
    told = {
        name.removesuffix("()")
        for row in rows(section(AUTHORS, "Flows and actions"))
        for name in inline(row[0])
    }
    own = {name for name, value in vars(Context).items() if isinstance(value, property)}
    assert {one.name for one in fields(Context)} - IN_PYTHON | own | {"transaction"} <= told


def test_the_table_of_states_and_reasons_is_the_code() -> None:
    found = rows(section(AUTHORS, "States and reasons"))
    assert {inline(row[0])[0] for row in found if len(row) == 2} == set(State)
    told = {(inline(state)[0], inline(reason)[0]) for state, reason, *_ in _of_three(found)}
    assert told == {(state, reason) for state in REASONS for reason in REASONS[state]}


def _of_three(found: list[list[str]]) -> list[list[str]]:
    return [row for row in found if len(row) == 3]


def test_the_table_of_transitions_is_the_code() -> None:
    found = rows(section(DEVELOPERS, "The states of an occurrence"))
    told = {State(inline(state)[0]): set(map(State, inline(after))) for state, after in found}
    assert told == {state: set(after) for state, after in TRANSITIONS.items() if after}


def test_the_table_of_routes_is_the_code() -> None:
    told = {inline(row[0])[0] for row in rows(section(AUTHORS, "The API"))}
    made = {f"{one.method} {one.bases[0]}{one.path}" for one in ROUTES}
    assert told == made | BESIDE


def test_the_tables_of_errors_are_the_code() -> None:
    known = answers._STATUS
    found = rows(section(AUTHORS, "Dispatch")) + rows(section(AUTHORS, "Errors"))
    told = {name: row[0] for row in found for name in inline(row[1]) if name in known}
    assert told.keys() == known.keys()
    for name, status in told.items():
        assert str(known[name]) in status.split(", "), name


def test_the_kinds_of_mistakes_are_all_told() -> None:
    told = section(AUTHORS, "Errors").partition("The codes: ")[2].partition("for a rule")[0]
    assert re.findall(r"`(\w+)`", told) == list(get_args(Code))


def test_the_table_of_parameters_is_the_template() -> None:
    """Each is told once, with its default."""
    found = rows(section(OPERATORS, "Parameters by goal"))
    given = {name: str(one.get("Default", "")) for name, one in template()["Parameters"].items()}
    assert sorted(inline(row[0])[0] for row in found) == sorted(given)
    assert {inline(row[0])[0]: row[1].strip("`") for row in found} == given


def test_the_words_of_a_tick_are_the_report() -> None:
    told = [row[0].strip("`") for row in rows(section(OPERATORS, "The line of a tick"))]
    assert sorted(told) == sorted(one.name for one in fields(TickReport))


def test_the_table_of_formats_is_the_code() -> None:
    """With the input that items have if no rule says one."""
    told = [
        row for row in rows(section(OPERATORS, "Move schedules here, and away")) if len(row) == 4
    ]
    usual = {name: inline(row[3]) for row in told for name in inline(row[0])}
    known = {
        name: [json.dumps(made) if isinstance(made, dict) else made]
        for name, one in FORMATS.items()
        for made in one.usual.values()
    }
    assert usual == known | {"csv": [], "jsonl": []}


def test_the_table_of_log_lines_is_the_code() -> None:
    """The lines are compared by their `action`. An action that a variable names is in the code as a
    text too.
    """
    told = {name for row in rows(section(OPERATORS, "Other lines")) for name in inline(row[0])}
    source = "\n".join(path.read_text() for path in SPEAKING)
    written = set(re.findall(r'"action": "(\w+)"|action="(\w+)"', source))
    known = {first or second for first, second in written} - {"tick"}
    assert known <= told
    assert all(f'"{name}"' in source for name in told)


def test_the_table_of_events_is_the_code() -> None:
    kinds, details, *_ = tables(section(OPERATORS, "Events"))
    titles = [name for row in kinds for name in inline(row[0])]
    troubles = [name for row in kinds for name in inline(row[1])]
    assert dict(zip(troubles, titles, strict=True)) == TITLES
    detail = notice_json(Notice("dead", "mail"), at=0, stack="duetick", by="")
    assert [inline(row[0])[0] for row in details] == [*detail]


def tables(text: str) -> list[list[list[str]]]:
    """Return the rows of each table of a text."""
    return [found for part in text.split("\n\n") if (found := rows(part))]


def test_each_word_has_one_meaning() -> None:
    found = rows(section(AUTHORS, "Words"))
    words = [word.strip() for row in found for word in row[0].replace("`", "").split(",")]
    assert len(words) > 60
    assert sorted(words) == sorted(set(words))


def test_what_a_word_is_in_code_is_there() -> None:
    for _, _, where in _of_three(rows(section(AUTHORS, "Words"))):
        for name in filter(lambda one: "." in one, inline(where)):
            module, _, last = name.rpartition(".")
            home = import_module(f"duetick.{module}")
            assert hasattr(home, last) or (PACKAGE / f"{name.replace('.', '/')}.py").exists(), name


def test_the_tables_of_a_schedule_are_the_code() -> None:
    """They have each field that the API takes or shows, and its name in Python."""
    found = [row[:2] for row in rows(section(AUTHORS, "Schedules"))]
    told = [name for row in found for name in inline(row[0])]
    views = (NewSchedule.model_json_schema()["properties"], *map(get_type_hints, VIEWS))
    assert set(told) == {name for view in views for name in view}
    known = {one.name for kind in (Record, Occurrence) for one in fields(kind)}
    assert {name for row in found for name in inline(row[1])} <= known


def test_the_tables_of_flows_are_the_code() -> None:
    told = [inline(row[0]) for row in rows(section(AUTHORS, "Flows and actions"))]
    names = {name.partition("=")[0].partition("(")[0] for cell in told for name in cell}
    own = {name for name in vars(AgentSchedules) if not name.startswith("_")}
    assert own - {"own", "flow"} <= names
    assert set(signature(Flow.action).parameters) - {"self", "name"} <= names
    assert {one.name for one in fields(ResolveContext)} | {"owned"} <= names
    words = set(re.findall(r"\w+", " ".join(inline(section(AUTHORS, "Flows and actions")))))
    assert set(signature(Flow.schedule).parameters) - {"self", "key"} <= words


def test_each_error_that_is_named_is_there() -> None:
    told = {name for row in rows(section(AUTHORS, "Flows and actions")) for name in inline(row[0])}
    named = {name for name in told if re.fullmatch(r"[A-Z]\w+[a-z]", name)} - TARGETS
    assert len(named) > 5
    assert all(hasattr(errors, name) for name in named - {"TargetFailed"})


def test_what_a_store_asks_is_there() -> None:
    named = re.findall(r"`(domain\.\w+)\.(\w+)`", PAGES[ADDERS])
    assert len(named) > 20
    for module, name in named:
        assert hasattr(import_module(f"duetick.{module}"), name), (module, name)


def test_the_tables_of_a_shelf_and_its_suite_are_the_code() -> None:
    of_shelf = {name for row in rows(section(ADDERS, "Adding a store")) for name in inline(row[1])}
    methods = {name for name in vars(Shelf) if not name.startswith("_")}
    assert methods <= of_shelf
    of_suite = rows(section(ADDERS, "The suite"))
    told = {name for row in of_suite for name in inline(row[0]) if name.isupper()}
    assert told == set(Capability.__members__)
    hooks = {name.partition("(")[0] for row in of_suite for name in inline(row[0]) if "(" in name}
    assert all(hasattr(StoreConformance, hook) for hook in hooks)
    assert len(hooks) == 5


def test_the_table_of_verdicts_is_the_code() -> None:
    told = [
        name for row in rows(section(AUTHORS, "Why did it not fire?")) for name in inline(row[0])
    ]
    assert sorted(told) == sorted(get_args(Verdict))


def test_the_table_of_tools_is_the_code() -> None:
    told = [name for row in rows(section(AUTHORS, "Agents")) for name in inline(row[0])]
    assert sorted(told) == sorted(TOOLS)


def test_each_quota_has_its_setting() -> None:
    settings = (TOP / "layers/duetick/duetick/runtime/settings.py").read_text()
    told = re.findall(r"`(DUETICK_\w+)`", section(AUTHORS, "Quotas"))
    assert sorted(told) == sorted(set(re.findall(r"DUETICK_QUOTA_\w+", settings)))
