"""J-11: no canary is found in anything that Duetick writes, but where its reader planted it."""

import json
import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from duetick.cli.main import _parser
from duetick.core.action import Action
from duetick.core.flows import Flow
from duetick.domain.redaction import Secrets

from tests.integration.canaries.acts import act, times_come, users_write
from tests.integration.canaries.listening import Written
from tests.integration.canaries.outlets import COMMANDS, LINES, OUTLETS, ROUTES, SILENT
from tests.integration.canaries.planted import PLACES, leaks
from tests.integration.canaries.stage import office
from tests.unit.test_documents import SPEAKING


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Everything that was written, by outlet."""
    with office(tmp_path_factory.mktemp("canaries")) as opened:
        for _ in act(opened):
            pass
    return opened.written


@pytest.mark.slow
@pytest.mark.parametrize("outlet", OUTLETS)
def test_j11_an_outlet_tells_no_canary_that_its_reader_may_not_see(
    written: Written, outlet: str
) -> None:
    told = written[outlet]
    assert told, "no act lets it speak"
    assert not {canary: one for one in told for canary in leaks(one, OUTLETS[outlet])}


def commands(parser: ArgumentParser, *words: str) -> Iterator[str]:
    """Yield every command that has no verbs below it."""
    verbs = [one for one in parser._actions if isinstance(one, _SubParsersAction)]
    if not verbs:
        yield " ".join(words)
    for word, below in verbs[0].choices.items() if verbs else ():
        yield from commands(below, *words, word)


def test_every_command_is_an_outlet() -> None:
    assert set(COMMANDS) == set(commands(_parser()))


UNPUBLISHED = {"GET /api/flows/{flow}/schedules", "POST /api/mcp"}


def test_every_route_is_an_outlet() -> None:
    document = json.loads(files("duetick.api").joinpath("openapi.json").read_text())
    published = {
        f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item
    }
    assert {route for route in ROUTES if not route.endswith("/dispatch")} - UNPUBLISHED == published


def test_every_log_line_is_an_outlet() -> None:
    source = "\n".join(path.read_text() for path in SPEAKING)
    found = re.findall(r'"action": "(\w+)"|action="(\w+)"', source)
    assert {first or second for first, second in found} <= {*LINES, *SILENT}
    assert all(f'"{name}"' in source for name in (*LINES, *SILENT))


def test_every_canary_stands_somewhere() -> None:
    """It stands in the sources of the acts, or in the texts that they plant."""
    folder = files("tests.integration.canaries")
    planted = "".join(
        folder.joinpath(name).read_text()
        for name in ("acts.py", "planted.py", "office/__init__.py")
    )
    assert [one for one in PLACES if planted.count(f'"{one}":') >= planted.count(one)] == []


@pytest.mark.slow
def test_j11_a_leak_is_found(written: Written) -> None:
    """If an outlet repeated a planted text, the test would name the canary and the outlet."""
    for outlet, reader in OUTLETS.items():
        spoilt = f"{written[outlet][-1]} canary-database"
        assert leaks(spoilt, reader) == {"canary-database"}
    assert leaks("canary-input", "owner") == set()
    assert leaks("canary-input", "operator") == {"canary-input"}


@pytest.mark.slow
def test_j11_a_redaction_that_is_left_out_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted defect: operators are shown inputs as they are, and errors with their secrets."""
    monkeypatch.setattr(Flow, "preview", lambda _flow, schedule: schedule.input)
    monkeypatch.setattr(Action, "secrets", lambda _action, _given: Secrets.of(None))
    with office(tmp_path) as opened:
        users_write(opened)
        times_come(opened)
    found = {
        outlet
        for outlet, reader in OUTLETS.items()
        for told in opened.written[outlet]
        if leaks(told, reader)
    }
    assert {"GET /api/users/{user}/schedules/{key}", "GET /api/users/{user}/export"} <= found
    assert {"line action_failed", "GET /api/users/{user}/schedules/{key}/history"} <= found
