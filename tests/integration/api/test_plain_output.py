"""A user names things, and an operator's terminal shows them: the text of one steers no terminal of
the other, and an output of any encoding gets all of it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from duetick.cli.main import main

from tests.integration.api.asking import HELLO
from tests.integration.local_product import Product

ODD = "e\u202ev\N{LATIN SMALL LETTER E WITH ACUTE}l"
"""A key with a mark that turns the direction of what follows it."""
ESCAPES = "\x1b[31m\x9b31m\u202e\u2066\n\r\x07\u65e5"
ENCODINGS = ("ascii", "cp1252", "utf-8")


@pytest.fixture
def odd(running: Product) -> list[str]:
    """The address and the token of a user. One schedule has texts that would steer a terminal."""
    running.client().put(ODD, {**HELLO, "input": {"text": ESCAPES}, "labels": {"team": ESCAPES}})
    running.client().pause(ODD, note="\u202e")
    return ["--url", running.stack.server.url, "--token", running.stack.token]


def steers(text: str) -> set[str]:
    """Each character that a terminal would not simply show."""
    return {one for one in text if not one.isprintable() and one != "\n"}


@pytest.mark.parametrize(
    "arguments",
    [
        *(["schedules", verb, ODD] for verb in ("get", "history", "upcoming", "explain", "run")),
        *(["schedules", "resume", ODD], ["schedules", "list"], ["schedules", "delete", ODD]),
        *(["schedules", "get", f"{ODD}\u202e"], ["schedules", "put", ODD, "--cron", ESCAPES]),
        *(["schedules", "list", "--label", ESCAPES], ["jobs", "show", ESCAPES]),
    ],
)
@pytest.mark.parametrize("shown", [(), ("--json",)])
def test_no_text_of_a_user_steers_the_terminal(
    odd: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], shown: tuple[str, ...]
) -> None:
    noun, *rest = arguments
    main([noun, *odd, *rest, *(() if "delete" in rest else shown)])
    printed = capsys.readouterr()
    assert steers(printed.out + printed.err) == set()


def test_no_argument_that_is_refused_steers_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["schedules", "list", f"--state{ESCAPES}"])
    assert steers(capsys.readouterr().err) == set()


@pytest.mark.parametrize(
    "arguments", [["get", "k", "--user", "\udcff"], ["list", "--flow", "\udcff"]]
)
def test_an_argument_that_is_not_utf_8_is_refused_plainly(
    running: Product,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    monkeypatch.setenv("DUETICK_TOKEN", running.stack.token)
    assert main(["schedules", "--url", running.stack.server.url, *arguments]) == 1
    assert capsys.readouterr().err == "duetick: An argument is not UTF-8; write it in UTF-8.\n"


def test_the_json_of_the_command_has_the_texts_whole(
    odd: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedules", *odd, "get", ODD, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["key"], shown["input"], shown["labels"]["team"]) == (
        ODD,
        {"text": ESCAPES},
        ESCAPES,
    )


def run(encoding: str, *arguments: str, given: bytes = b"") -> bytes:
    """The output of a command that succeeds, on outputs of that encoding."""
    command = "from duetick.cli.main import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments],
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        input=given,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_output_of_any_encoding_gets_all_of_it(odd: list[str], encoding: str) -> None:
    assert b"team" in run(encoding, "schedules", *odd, "get", ODD)
    (shown,) = json.loads(run(encoding, "schedules", *odd, "list", "--json").decode(encoding))
    assert (shown["key"], shown["input"]) == (ODD, {"text": ESCAPES})


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_export_is_utf_8_whatever_the_terminal_takes(
    odd: list[str], tmp_path: Path, encoding: str
) -> None:
    for form in ("csv", "jsonl"):
        file = tmp_path / f"{encoding}.{form}"
        run(encoding, "export", form, *odd, "--output", str(file))
        printed = run(encoding, "export", form, *odd)
        assert printed == file.read_bytes()
        assert ODD in printed.decode()
        renamed = printed.replace(ODD.encode(), f"{ODD}2".encode())
        assert b"would be new" in run(encoding, "import", form, *odd, "-", given=renamed)
