"""`duetick schedules …` says the API's words at a terminal."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from duetick.cli.main import main

from tests.integration.api.asking import HELLO
from tests.integration.local_product import NINE, Product, tick_seldom

PUT = ["put", "roses", "--cron", "0 9 * * *", "--flow", "reminders", "--action", "remind"]


class Terminal:
    """The command, with the token of a user."""

    def __init__(self, running: Product, printed: pytest.CaptureFixture[str]) -> None:
        self._running = running
        self._printed = printed

    def run(self, *arguments: str, token: str | None = None) -> tuple[int, str, str]:
        """Run the command. Return its exit code and its output."""
        self._printed.readouterr()
        known = ["--url", self._running.stack.server.url, "--token"]
        given = self._running.stack.token if token is None else token
        code = main(["schedules", *known, given, *arguments])
        printed = self._printed.readouterr()
        return code, printed.out, printed.err

    def lines(self, *arguments: str) -> list[dict[str, object]]:
        """Return the answer of a command that succeeds, as a list of documents."""
        shown = () if arguments[0] == "delete" else ("--json",)
        code, out, err = self.run(*arguments, *shown)
        assert code == 0, err
        found = json.loads(out) if out else []
        return found if isinstance(found, list) else [found]


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
    (ran,) = terminal.lines("run", "roses")
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


def test_an_operator_is_needed_to_name_a_user(terminal: Terminal) -> None:
    code, _, err = terminal.run("--user", "bob", "list")
    assert code == 1
    assert "This is for operators" in err
    assert "DUETICK_OPERATOR" in err


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


def test_all_that_is_wrong_with_a_schedule_is_told_at_once_and_readably(terminal: Terminal) -> None:
    wrong = ("--cron", "75 * * * *", "--timezone", "PST", "--policies", '{"grace": -1}')
    code, _, err = terminal.run(*PUT, *wrong)
    assert code == 1
    assert "minute: '75' is outside 0-59" in err
    assert "timezone: 'PST' is no IANA zone" in err
    assert "'America/Los_Angeles'" in err
    assert "policies.grace: expected a whole number from 0 to 86400, got -1." in err
    assert "input: expected an object, got null." in err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{'a': 1}", "--input is not JSON: look at line 1, column 2. Quote it for your shell."),
        ('{"a": 1, "a": 2}', "a: comes twice in --input; leave one of them out."),
        ("NaN", "--input is not JSON: it holds a number that JSON does not know."),
    ],
)
def test_an_option_that_is_no_json_is_told(terminal: Terminal, given: str, says: str) -> None:
    code, _, err = terminal.run(*PUT, "--input", given)
    assert (code, says in err) == (1, True)
    assert "Expecting" not in err


def test_a_second_put_takes_back_nothing_that_it_does_not_name(terminal: Terminal) -> None:
    more = ("--timezone", "Europe/Berlin", "--policies", '{"priority": 5, "catchUp": 3}')
    labels = ("--label", "team=garden", "--label", "old=x")
    (first,) = terminal.lines(*PUT, "--input", '{"text": "hi"}', *more, *labels)
    terminal.lines("pause", "roses")
    (second,) = terminal.lines("put", "roses", "--cron", "0 8 * * *")
    changed = {"state", "cron", "version", "nextFireAt", "enabled", "paused"}
    assert {name for name in first if first[name] != second[name]} == changed
    assert second["enabled"] is False


def test_a_put_takes_back_what_it_is_told_to(terminal: Terminal) -> None:
    more = ("--timezone", "Europe/Berlin", "--policies", '{"priority": 5, "catchUp": 3}')
    labels = ("--label", "team=garden", "--label", "old=x")
    terminal.lines(*PUT, "--input", '{"text": "hi"}', *more, *labels)
    back = ("--no-label", "old", "--label", "new=y", "--timezone", "")
    (second,) = terminal.lines("put", "roses", *back, "--policies", '{"priority": null}')
    policies = second["policies"]
    assert isinstance(policies, dict)
    assert (second["labels"], second["timezone"]) == ({"team": "garden", "new": "y"}, None)
    assert (policies["priority"], policies["catchUp"]) == (0, 3)
    (third,) = terminal.lines("put", "roses", "--policies", "null")
    assert isinstance(third["policies"], dict)
    assert third["policies"]["catchUp"] == 10


def test_a_put_takes_back_some_fields_of_a_retry_and_leaves_the_others(
    terminal: Terminal,
) -> None:
    hard = '{"delivery": "at_least_once", "retry": {"attempts": 7, "first": 60}, "priority": null}'
    terminal.lines(*PUT, "--input", '{"text": "hi"}', "--policies", hard)
    (second,) = terminal.lines("put", "roses", "--policies", '{"retry": {"attempts": 3}}')
    policies = second["policies"]
    assert isinstance(policies, dict)
    assert isinstance(policies["retry"], dict)
    assert (policies["retry"]["attempts"], policies["retry"]["first"]) == (3, 60)


def test_a_first_put_says_what_it_needs(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        terminal.run("put", "roses", "--cron", "0 9 * * *")
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "usage: duetick schedules put" in told
    assert "there is none yet, and to create it needs --flow, --action" in told


def test_a_put_says_of_a_wrong_token_what_is_wrong_with_it(terminal: Terminal) -> None:
    code, _, err = terminal.run(*PUT, token="not-one")
    assert (code, "401" in err) == (1, True)


def test_d09_the_actions_are_listed(terminal: Terminal) -> None:
    by_name = {line["action"]: line for line in terminal.lines("actions")}
    assert "remind" in by_name
    assert "clean_up" not in by_name
    assert "delivery" in str(by_name["remind"]["mayChange"])


def test_j07_a_history_is_filtered(terminal: Terminal) -> None:
    terminal.lines(*PUT, "--input", '{"text": "hi"}')
    terminal.lines("run", "roses")
    assert len(terminal.lines("history", "roses", "--state", "succeeded")) == 1
    assert terminal.lines("history", "roses", "--state", "dead") == []
    assert terminal.lines("history", "roses", "--to", "2026-01-01T00:00:00Z") == []
    code, _, err = terminal.run("history", "roses", "--state", "lost")
    assert (code, "state: expected" in err) == (1, True)


def test_j09_a_range_is_shown_from_when_to_when_with_its_count(
    running: Product, terminal: Terminal
) -> None:
    """Three days of downtime: the newest of three times fires, and the others are one range."""
    terminal.lines(*PUT, "--input", '{"text": "hi"}')
    running.clock.now = NINE + 2 * 86_400_000 + 3_600_000
    span = "from 2026-12-01T09:00:00Z to 2026-12-02T09:00:00Z"
    _, out, _ = terminal.run("explain", "roses", "--at", "2026-12-02T09:00:00Z")
    assert f"no tick has claimed it yet; the next one makes it one of 2 times {span}." in out
    running.tick()
    _, out, _ = terminal.run("history", "roses")
    assert [line.split("  ")[0] for line in out.splitlines()] == [
        "NOMINAL TIME",
        "2026-12-03T09:00:00Z",
        "2026-12-01T09:00:00Z to 2026-12-02T09:00:00Z, 2 times",
    ]
    _, out, _ = terminal.run("explain", "roses", "--at", "2026-12-02T09:00:00Z")
    assert f"The history has it as one of 2 times {span}: cancelled, missed." in out
    assert [(one["until"], one["count"]) for one in terminal.lines("history", "roses")] == [
        (None, 1),
        ("2026-12-02T09:00:00Z", 2),
    ]


def test_a02_an_explanation_is_read_as_sentences(terminal: Terminal) -> None:
    terminal.lines(*PUT, "--input", '{"text": "hi"}')
    code, out, _ = terminal.run("explain", "roses", "--at", "2026-12-01T09:00:00Z")
    assert code == 0
    assert out.splitlines()[0] == "It will fire, as things stand."
    (whole,) = terminal.lines("explain", "roses")
    assert (whole["verdict"], whole["before"]) == ("no_schedule", None)
    code, _, err = terminal.run("explain", "roses", "--at", "soon")
    assert (code, "at: expected a time like" in err) == (1, True)


def test_v01_a_note_in_a_sentence_steers_no_terminal(terminal: Terminal) -> None:
    terminal.lines(*PUT, "--input", '{"text": "hi"}')
    terminal.lines("pause", "roses", "--note", "\x1b[31mred")
    _, out, _ = terminal.run("explain", "roses", "--at", "2026-12-01T09:00:00Z")
    assert "[31mred" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "usage", "says"),
    [
        ("schedules put x --cronn 1", "duetick schedules put", "unknown: --cronn 1"),
        ("schedules get x y", "duetick schedules get", "unknown: y"),
        ("schedules list --port 3", "duetick schedules list", "unknown: --port 3"),
        ("schedules lst", "duetick schedules", "invalid choice: 'lst' (choose from 'list', "),
        ("schedules", "duetick schedules", "{list,actions,get,put,"),
        ("local --port x", "duetick local", "expected a whole number, got 'x'"),
        ("costs --foo", "duetick costs", "unknown: --foo"),
        ("export csv --to all.csv", "duetick export csv", "unknown: --to"),
        ("", "duetick", "{local,costs,migrate,check,rebuild,recover,redrive,verify,overview,"),
    ],
)
def test_wrong_arguments_are_told_with_the_usage_of_their_part(
    capsys: pytest.CaptureFixture[str], arguments: str, usage: str, says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(f"usage: {usage} [-h]")
    assert says in told


SESAME = "operator-sesame"


@pytest.mark.parametrize(
    "arguments",
    [
        ("overview", "--token", SESAME),
        ("overview", f"--token={SESAME}"),
        ("schedules", "list", "--tok", SESAME),
        ("schedules", "list", f"--toke={SESAME}"),
        ("--token", SESAME, "schedules", "list"),
        ("occurrences", "--token", SESAME, "list"),
        ("schedules", "list", "--store", f"postgresql://me:{SESAME}@localhost/app"),
        ("schedules", "list", "--limit", "0", "--token", SESAME),
    ],
    ids=" ".join,
)
def test_j11_wrong_usage_repeats_no_secret_of_the_arguments(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith("usage: duetick")
    assert " error: " in told
    assert SESAME not in told


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"duetick {version('duetick')}\n")


def test_who_asks_whom_may_stand_behind_the_verb(
    running: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    known = ["--url", running.stack.server.url, "--token", running.stack.token]
    assert main(["schedules", "list", *known]) == 0
    assert main(["schedules", *known, "list"]) == 0
    assert main(["schedules", "list", *known, "--user", "bob"]) == 1
    assert "This is for operators" in capsys.readouterr().err


def test_t13_the_command_says_on_stderr_that_a_schedule_is_tighter_than_the_cadence(
    terminal: Terminal, running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick_seldom(running, monkeypatch)
    code, out, err = terminal.run(*PUT, "--cron", "*/5 * * * *", "--input", '{"text": "hi"}')
    assert (code, "roses fires up to" in out) == (0, False)
    said = next(line for line in err.splitlines() if line.startswith("duetick: "))
    assert said.startswith("duetick: roses fires up to each 300 s, and a tick comes each 1800 s: ")
    code, _, err = terminal.run("get", "roses")
    assert (code, err) == (0, "")
