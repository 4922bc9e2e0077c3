"""A flow that changes is loaded again by the local stack, while schedules fire."""

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from duetick.cli.reloading import Watch
from duetick.domain.errors import ConfigurationError
from duetick.runtime import wiring
from duetick.stores import open_store

from tests.integration.local_product import NINE, Clock, Product, product

pytestmark = pytest.mark.slow

PACKAGE = "plot_flows"
FLOW = """
import plot_words
from duetick import Flow

plot = Flow("plot")


@plot.action("say")
def say(text: str, ctx: object) -> None:
    from {package} import later
    plot_words.said(f"{word} {{text}} {{later.WORD}}")
"""
WORDS = """
import {test}

def said(text):
    {test}.SAID.append(text)
"""
SAID: list[str] = []
"""What the actions said."""


class Plot:
    """A project, and the local stack that runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / PACKAGE).mkdir()
        self.write(f"{PACKAGE}/__init__.py", "")
        self.write(f"{PACKAGE}/later.py", "WORD = 'a'\n")
        self.write("plot_words.py", WORDS.format(test=__name__))
        self.flow("one")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.folder / name
        path.write_text(text)
        return path

    def flow(self, word: str, more: str = "") -> Path:
        """Write the flow, whose action says a word."""
        return self.write(f"{PACKAGE}/plot.py", FLOW.format(package=PACKAGE, word=word) + more)


@pytest.fixture
def plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plot]:
    """Yield a project whose flows are a package of its own name. Python keeps compiled files."""
    SAID.clear()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv("DUETICK_FLOWS", PACKAGE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield Plot(tmp_path)
    for name in [*sys.modules]:
        if name.startswith("plot_"):
            del sys.modules[name]


@pytest.fixture
def running(plot: Plot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """The local stack on it."""
    address = f"sqlite:///{plot.folder}/plot.db"
    with product(address, Clock(NINE), monkeypatch, plot.folder) as made:
        yield made


def run(running: Product) -> str:
    """Run the action now. Return the word that it said."""
    body = {"cron": "@yearly", "flow": "plot", "action": "say", "input": "hello"}
    assert running.call("PUT", "/api/schedules/k", body)[0] in (200, 201)
    status, answer = running.call("POST", "/api/schedules/k/run")
    assert (status, answer["state"]) == (202, "succeeded"), answer
    return SAID[-1]


def test_a_call_after_a_change_runs_the_flow_as_it_is_now(plot: Plot, running: Product) -> None:
    assert run(running) == "one hello a"
    changed = plot.flow("two")
    running.stack.reload([changed])
    assert run(running) == "two hello a"


def test_a_change_in_the_same_second_and_of_the_same_size_is_seen(
    plot: Plot, running: Product
) -> None:
    path = plot.flow("one")
    before = path.stat()
    running.stack.reload([path])
    run(running)
    plot.flow("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    running.stack.reload([path])
    assert run(running) == "two hello a"


def test_a_module_of_the_project_beside_the_flows_is_loaded_again(
    plot: Plot, running: Product
) -> None:
    path = plot.write(
        "plot_words.py", WORDS.format(test=__name__).replace("(text)\n", "(text.upper())\n")
    )
    running.stack.reload([path])
    assert run(running) == "ONE HELLO A"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\nclass:\n", "later.py:2: SyntaxError: invalid syntax"),
        (
            "import no_such_module\n",
            "later.py:1: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("raise SystemExit(3)\n", "later.py:1: SystemExit: 3"),
        ("from duetick import Flow\nFlow('a b')\n", "later.py:2: flow: expected a letter"),
    ],
)
def test_flows_that_cannot_be_loaded_leave_those_of_before(
    plot: Plot, running: Product, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    assert run(running) == "one hello a"
    running.stack.reload([plot.write(f"{PACKAGE}/later.py", text)])
    said = capsys.readouterr().err
    assert said.startswith(
        f"{PACKAGE}/later.py: not loaded, the flows of before stay. The flows cannot"
    )
    assert told in said
    assert len(said.splitlines()) == 1
    assert run(running) == "one hello a"  # which imports a module of before, as it runs


def test_no_error_of_a_module_ends_the_look_at_the_files(
    plot: Plot, running: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    running.stack.reload([plot.write(f"{PACKAGE}/later.py", "raise KeyboardInterrupt\n")])
    assert "the flows of before stay. KeyboardInterrupt" in capsys.readouterr().err
    assert run(running) == "one hello a"


def test_flows_that_are_mended_are_loaded(plot: Plot, running: Product) -> None:
    running.stack.reload([plot.write(f"{PACKAGE}/plot.py", "class:")])
    running.stack.reload([plot.flow("three")])
    assert run(running) == "three hello a"


STATIC = """
plot.schedule("{name}", cron="0 9 * * *", action="say", input="x")
"""


def test_static_schedules_are_those_of_the_flows_as_they_are_now(
    plot: Plot, running: Product
) -> None:
    for names in (("first",), ("second", "third"), ()):
        running.stack.reload([plot.flow("one", "".join(STATIC.format(name=one) for one in names))])
        kept = [one.key for one in running.store.schedules.list("")[0]]
        assert sorted(kept) == [f"plot/{name}" for name in names]


DECLARED = """
from dataclasses import dataclass

@dataclass
class Told:
    word: str

told = Flow("told", settings=Told)
"""


def test_settings_are_read_again_and_have_to_fit(
    plot: Plot, running: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = plot.folder / "settings.local.json"
    settings.write_text('{"word": 7}')
    running.stack.reload([plot.flow("one", DECLARED)])
    assert "told: The settings do not fit Told. word: expected text" in capsys.readouterr().err
    assert wiring.flows().get("told") is None
    settings.write_text('{"word": "please"}')
    running.stack.reload([settings])
    assert "settings.local.json: loaded again, 2 flows, 1 action." in capsys.readouterr().out
    assert wiring.flows().settings["word"] == "please"
    settings.unlink()
    running.stack.reload([settings])
    assert "word: is missing" in capsys.readouterr().err
    assert wiring.flows().settings["word"] == "please"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"word": "a\0b"}', "settings.local.json is no text: it has a zero byte in it."),
        (b"\xff\xfe{}", "settings.local.json cannot be read as a text in UTF-8:"),
    ],
)
def test_settings_that_are_no_text_are_named(
    plot: Plot, running: Product, capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    settings = plot.folder / "settings.local.json"
    settings.write_bytes(content)
    running.stack.reload([settings])
    assert told in capsys.readouterr().err


def test_a_mark_that_an_editor_put_before_settings_is_none_of_them(
    plot: Plot, running: Product
) -> None:
    settings = plot.folder / "settings.local.json"
    settings.write_text('{"word": "please"}', "utf-8-sig")
    running.stack.reload([settings])
    assert wiring.flows().settings["word"] == "please"


WAITS = """
import {test}

@plot.action("wait")
def wait(text: str, ctx: object) -> None:
    {test}.BEGAN.set()
    {test}.GOES_ON.wait(60)
    plot_words.said("{word}")
"""
BEGAN, GOES_ON = threading.Event(), threading.Event()


def test_what_runs_ends_with_the_flow_that_it_began_with(plot: Plot, running: Product) -> None:
    running.stack.reload([plot.flow("one", WAITS.format(test=__name__, word="the old one"))])
    body = {"cron": "@yearly", "flow": "plot", "action": "wait", "input": "x"}
    assert running.call("PUT", "/api/schedules/w", body)[0] == 201
    with ThreadPoolExecutor() as beside:
        answer = beside.submit(running.call, "POST", "/api/schedules/w/run")
        assert BEGAN.wait(60)
        running.stack.reload([plot.flow("one", WAITS.format(test=__name__, word="the new one"))])
        GOES_ON.set()
        assert answer.result(60)[0] == 202
    assert SAID == ["the old one"]
    assert running.call("POST", "/api/schedules/w/run")[0] == 202
    assert SAID == ["the old one", "the new one"]


def test_schedules_that_fire_in_the_midst_of_it_all_run_once(plot: Plot, running: Product) -> None:
    for number in range(60):
        body = {"cron": "* * * * *", "flow": "plot", "action": "say", "input": str(number)}
        running.client().put(f"k-{number}", body)
    running.clock.now += 60_000
    with ThreadPoolExecutor() as beside:
        report = beside.submit(running.tick)
        reloads = 0
        while not report.done() or not reloads:
            running.stack.reload([plot.flow(f"word-{reloads}")])
            reloads += 1
    assert report.result()["failed"] == 0
    assert sorted(int(one.split()[1]) for one in SAID) == [*range(60)]


def test_a_file_that_is_written_in_two_steps_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("one")
    watch = Watch(lambda: [path, tmp_path / "missing.py"])
    assert watch.find_changed() == []
    path.write_text("half")
    assert watch.find_changed() == []
    path.write_text("whole")
    assert watch.find_changed() == []
    assert watch.find_changed() == [path]
    assert watch.find_changed() == []
    path.unlink()
    assert [watch.find_changed(), watch.find_changed()] == [[], [path]]


def test_the_local_stack_is_not_started_with_settings_that_do_not_fit(
    plot: Plot, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot.flow("one", DECLARED)
    address = f"sqlite:///{plot.folder}/plot.db"
    with (
        pytest.raises(ConfigurationError, match="word: is missing"),
        product(address, Clock(NINE), monkeypatch, plot.folder),
    ):
        pass
    store = open_store(address)
    store.close()
