"""`duetick schedules …` says the API's words at a terminal."""

import json
import os
import subprocess
import sys

import pytest
from duetick.cli.main import main

from tests.integration.api.asking import HELLO
from tests.integration.local_product import Product

PUT = ["put", "roses", "--cron", "0 9 * * *", "--flow", "reminders", "--action", "remind"]


class Terminal:
    """The command, with the token of a user."""

    def __init__(self, running: Product, printed: pytest.CaptureFixture[str]) -> None:
        self._running = running
        self._printed = printed

    def run(self, *arguments: str, token: str | None = None) -> tuple[int, str, str]:
        """The exit code, and what was printed."""
        self._printed.readouterr()
        known = ["--url", self._running.stack.server.url, "--token"]
        given = self._running.stack.token if token is None else token
        code = main(["schedules", *known, given, *arguments])
        printed = self._printed.readouterr()
        return code, printed.out, printed.err

    def lines(self, *arguments: str) -> list[dict[str, object]]:
        """What a command that succeeds answers."""
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@pytest.fixture
def terminal(running: Product, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal beside the local stack."""
    return Terminal(running, capsys)


def test_each_verb_does_what_it_says(terminal: Terminal) -> None:
    (made,) = terminal.lines(*PUT, "--input", '{"text": "hi"}', "--timezone", "Europe/Berlin")
    assert (made["key"], made["timezone"]) == ("roses", "Europe/Berlin")
    assert [one["key"] for one in terminal.lines("list")] == ["roses"]
    assert terminal.lines("get", "roses") == [made]
    assert len(terminal.lines("upcoming", "roses")) == 10
    (paused,) = terminal.lines("pause", "roses", "--note", "rain")
    assert paused["enabled"] is False
    terminal.lines("resume", "roses")
    (ran,) = [line for line in terminal.lines("run", "roses") if "state" in line]
    assert ran["state"] == "succeeded"
    assert [line["state"] for line in terminal.lines("history", "roses")] == ["succeeded"]
    assert terminal.lines("delete", "roses") == []
    assert terminal.lines("list") == []


def test_a_schedule_is_put_with_policies_and_labels(terminal: Terminal) -> None:
    policies = {"delivery": "at_least_once", "retry": {"attempts": 2}, "catchUp": 3}
    labels = ["--label", "team=garden", "--label", "note=a=b"]
    (made,) = terminal.lines(
        *PUT, "--input", '{"text": "hi"}', "--policies", json.dumps(policies), *labels
    )
    assert made["labels"] == {"team": "garden", "note": "a=b"}
    kept = made["policies"]
    assert isinstance(kept, dict)
    assert (kept["delivery"], kept["retry"]["attempts"], kept["catchUp"]) == ("at_least_once", 2, 3)


def test_a_run_repeated_with_its_idempotency_key_runs_once(terminal: Terminal) -> None:
    terminal.lines(*PUT, "--input", '{"text": "hi"}')
    once = ["run", "roses", "--idempotency-key", "order-7"]
    first, again, other = (terminal.lines(*each)[-1] for each in (once, once, once[:2]))
    assert first == again
    assert first["origin"] != other["origin"]
    assert len(terminal.lines("history", "roses")) == 2


@pytest.mark.parametrize("token", ["with\nbreak", "caf\u00e9 \u65e5"])
def test_a_token_that_no_header_can_hold_is_not_shown(terminal: Terminal, token: str) -> None:
    code, _, err = terminal.run("list", token=token)
    assert code == 1
    assert "no header can" in err
    assert token not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["get", "none"], "No such schedule"),
        (["get", ""], "key"),
        (["delete", ".."], "not allowed"),
        ([*PUT[:3], "75 * * * *", *PUT[4:], "--input", '{"text": "x"}'], "75"),
        ([*PUT, "--input", "{text}"], "--input is not JSON"),
        ([*PUT, "--policies", "{grace}"], "--policies is not JSON"),
        ([*PUT, "--policies", '{"grac": 5}'], "grac: is not a field"),
        ([*PUT, "--label", "team"], "team=garden"),
        ([*PUT, "--label", "=x"], "team=garden"),
    ],
)
def test_what_goes_wrong_is_said_in_a_line(
    terminal: Terminal, arguments: list[str], says: str
) -> None:
    code, _, err = terminal.run(*arguments)
    assert code == 1
    assert says in err
    assert "Traceback" not in err


def test_a_missing_token_is_asked_for(terminal: Terminal) -> None:
    code, _, err = terminal.run("list", token="")
    assert code == 1
    assert "DUETICK_TOKEN" in err


def test_a_user_is_named_to_a_stack_alone(terminal: Terminal) -> None:
    code, _, err = terminal.run("--user", "bob", "list")
    assert code == 1
    assert "--user needs --stack" in err


def test_a_reader_that_has_enough_is_no_failure(running: Product) -> None:
    running.client().put("hello", HELLO)
    known = {"DUETICK_URL": running.stack.server.url, "DUETICK_TOKEN": running.stack.token}
    read, write = os.pipe()
    os.close(read)
    command = "from duetick.cli.main import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", command, "schedules", "list"],
        env=os.environ | known,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_api_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedules", "--url", "http://127.0.0.1:1", "--token", "x", "list"]) == 1
    told = capsys.readouterr().err
    assert "127.0.0.1:1" in told
    assert "make run" in told
    assert "--url" in told
