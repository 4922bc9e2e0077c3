"""`duetick jobs …` says the API's words at a terminal."""

import io
import json
import sys

import pytest
from duetick.cli.main import main

from tests.integration.api.asking import HOUR
from tests.integration.local_product import Product

ADD = ("add", "--flow", "reminders", "--action", "remind", "--input", '{"text": "hi"}')


class Terminal:
    """The command, with the token of a user."""

    def __init__(self, running: Product, printed: pytest.CaptureFixture[str]) -> None:
        self._running = running
        self._printed = printed

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command. Return its exit code and its output."""
        self._printed.readouterr()
        known = ["--url", self._running.stack.server.url, "--token", self._running.stack.token]
        code = main(["jobs", *known, *arguments])
        printed = self._printed.readouterr()
        return code, printed.out, printed.err

    def ask(self, *arguments: str) -> object:
        """Return the document that a successful command prints."""
        code, out, err = self.run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def one(self, *arguments: str) -> dict[str, object]:
        """Return the object of that document."""
        found = self.ask(*arguments)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def terminal(running: Product, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal beside the local stack."""
    return Terminal(running, capsys)


def test_k01_each_verb_does_what_it_says(running: Product, terminal: Terminal) -> None:
    made = terminal.one(*ADD, "--delay", "60", "--key", "order-7", "--label", "team=a")
    name = str(made["id"])
    assert (made["state"], made["key"], made["labels"]) == ("scheduled", "order-7", {"team": "a"})
    assert terminal.ask("list", "--state", "pending") == [made]
    assert terminal.one("show", name) == made
    assert "It will fire" in terminal.run("explain", name)[1]
    running.clock.now += HOUR
    running.tick()
    assert terminal.one("show", name)["state"] == "succeeded"
    history = terminal.ask("history", name)
    assert isinstance(history, list)
    assert [line["state"] for line in history] == ["succeeded"]
    assert terminal.one("explain", name)["verdict"] == "fired"


def test_k01_a_job_is_cancelled(running: Product, terminal: Terminal) -> None:
    name = str(terminal.one(*ADD, "--at", "2026-12-01T12:00:00Z")["id"])
    assert terminal.one("cancel", name)["state"] == "cancelled"
    code, _, err = terminal.run("show", "occ_1")
    assert code != 0
    assert "No such job" in err


def test_k01_a_batch_comes_on_the_standard_input(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"flow": "reminders", "action": "remind", "input": {"text": "hi"}, "delay": 60}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps([job, job])))
    answers = terminal.ask("add", "--batch")
    assert isinstance(answers, list)
    assert [one["status"] for one in answers] == [201, 201]
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps([job, {**job, "action": "none"}])))
    code, out, err = terminal.run("add", "--batch")
    assert code != 0
    assert "1 of 2 were refused" in err
    assert "201" in out


@pytest.mark.parametrize("wrong", [("add",), ("add", "--flow", "reminders")])
def test_k01_what_is_missing_is_named(terminal: Terminal, wrong: tuple[str, ...]) -> None:
    code, _, err = terminal.run(*wrong)
    assert code != 0
    assert "--action" in err
