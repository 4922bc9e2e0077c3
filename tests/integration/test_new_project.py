"""`duetick new`: a repository that runs, tests and builds at once, with the wheel alone."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from os.path import normpath
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest
from duetick.cli import new, own_wheel, package
from duetick.cli.main import main
from duetick.cli.package import make
from duetick.cli.template import read_template
from duetick.version import VERSION

from tests.lab.cache import TOP
from tests.lab.deployable import deployable
from tests.lab.process import Server, free_port, run
from tests.lab.pythons import working_python
from tests.lab.wheels import offline

PATIENCE: Final = 60
WHEEL: Final = f"duetick-{VERSION}-py3-none-any.whl"
FILES: Final = {
    ".github/workflows/ci.yml",
    ".gitignore",
    "Makefile",
    "README.md",
    "flows/__init__.py",
    "flows/greetings.py",
    "flows/requirements.txt",
    "pytest.ini",
    "requirements.txt",
    "samconfig.toml",
    "settings.local.json",
    "template.yaml",
    "tests/test_greetings.py",
    f"wheels/{WHEEL}",
}

LEFT_OUT: Final = ("PYTHON", "MAKE", "MFLAGS")
"""How the names of variables begin that a shell has from this tree's own `make test`."""

pytestmark = pytest.mark.slow


class Repository:
    """A folder that `duetick new` made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / ".venv/bin"
        self.as_made = self.texts()

    def texts(self) -> dict[str, str]:
        """Return the texts of the repository's files, without the wheel."""
        listed = (path for path in self.folder.rglob("*") if path.is_file())
        named = {str(path.relative_to(self.folder)): path for path in listed}
        return {
            name: "" if name.endswith(".whl") else path.read_text()
            for name, path in named.items()
            if not name.startswith((".venv/", ".cache/", ".duetick/")) and "cache" not in name
        }

    def run(self, *command: str, **variables: str) -> str:
        """Run a command in the repository, in a shell that knows nothing of this tree."""
        return run(list(command), cwd=self.folder, env=environment(variables))

    def change(self, file: str, before: str, after: str) -> None:
        """Change a file of the repository."""
        path = self.folder / file
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a shell's variables: Python 3.13 on the PATH, no index for pip, and no outer
    `make`.
    """
    path = os.pathsep.join([str(working_python("a project").parent), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    found = offline()
    return (
        kept
        | found
        | {"PATH": path, "PIP_CONSTRAINT": f"{found['PIP_FIND_LINKS']}/constraints.txt"}
        | dict(more or {})
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Make a repository called garden from this checkout, and set it up by its own Makefile."""
    folder = tmp_path_factory.mktemp("projects") / "garden"
    assert main(["new", str(folder)]) == 0
    made = Repository(folder)
    made.run("make", ".venv/ready")
    return made


def test_it_holds_what_a_repository_needs_under_its_own_name(repository: Repository) -> None:
    texts = repository.texts()
    assert texts.keys() == FILES
    assert [name for name, text in texts.items() if "my-app" in text] == []
    assert 'stack_name = "garden-dev"' in texts["samconfig.toml"]
    assert f"--find-links wheels\nduetick[cli,testing]=={VERSION}\n" in texts["requirements.txt"]


def test_its_tests_pass_at_once(repository: Repository) -> None:
    assert "2 passed" in repository.run("make", "test")


def test_it_is_built_to_the_same_bytes_from_the_wheel_as_from_the_checkout(
    repository: Repository,
) -> None:
    repository.run("make", "build")
    stack = repository.folder / ".duetick/stack"
    sums = (stack / "SHA256SUMS").read_text()
    assert sums == (deployable() / "SHA256SUMS").read_text()
    assert {line[66:] for line in sums.splitlines()} == {
        *("CHANGELOG.md", "deps.zip", "dispatch.zip", "duetick.zip", "migrate.zip", "openapi.json"),
        *("schedules.zip", "template.yaml", "tick.zip"),
    }
    assert "FlowsLayer:" not in (stack / "template.yaml").read_text()
    assert (repository.folder / ".duetick/flows/python/flows/greetings.py").is_file()
    assert not make(deployable())  # it is there, so nothing is done


def test_the_wheel_makes_the_same_repository_alone(repository: Repository, tmp_path: Path) -> None:
    pip = (".venv/bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall")
    repository.run(*pip, f"wheels/{WHEEL}")
    repository.run(".venv/bin/duetick", "new", str(tmp_path / "garden"))
    assert Repository(tmp_path / "garden").as_made == repository.as_made


def links(text: str) -> list[str]:
    """Return the links of a text that stay in its tree."""
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [one for one in found if not re.match(r"[a-z]+:|#", one)]


def test_no_link_of_the_wheel_leads_nowhere(repository: Repository) -> None:
    with ZipFile(repository.folder / "wheels" / WHEEL) as wheel:
        texts = {one: wheel.read(one).decode() for one in wheel.namelist() if one.endswith(".md")}
        told = wheel.read(f"duetick-{VERSION}.dist-info/METADATA").decode()
        names = {*wheel.namelist()}
    assert links(told) == []
    assert "# Duetick" in told
    there = [
        normpath(Path(name).parent / link.partition("#")[0])
        for name, text in texts.items()
        for link in links(text)
    ]
    assert len(there) > 20
    assert {*there} <= names


SUITE = """
import pytest
from duetick.stores import open_store
from duetick.testing import StoreConformance

class TestMine(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path):
        opened = open_store(f"sqlite:///{tmp_path}/mine.db")
        opened.migrate()
        return opened
"""


def test_the_wheel_runs_the_published_suite_on_a_store_of_ones_own(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "test_store.py").write_text(SUITE)
    options = ("-q", "-k", "test_i0", str(tmp_path / "test_store.py"))
    said = repository.run(".venv/bin/python", "-m", "pytest", *options)
    found = re.search(r"^(\d+) passed", said, re.MULTILINE)
    assert found
    assert int(found[1]) > 20


def test_the_wheel_brings_no_flows_and_the_command_its_version(repository: Repository) -> None:
    site = next(repository.folder.glob(".venv/lib/python3*/site-packages"))
    assert not (site / "flows").exists()
    assert repository.run(".venv/bin/duetick", "--version") == f"duetick {VERSION}\n"
    assert "schedules" in repository.run(".venv/bin/duetick", "--help")


class Local:
    """The `make run` of a repository, and its output."""

    def __init__(self, repository: Repository, folder: Path, port: int) -> None:
        self._log = folder / "output"
        self._log.unlink(missing_ok=True)
        command = ["make", "run", f"PORT={port}"]
        self.server = Server(command, self._log, env=environment(), cwd=repository.folder)

    def wait_for(self, text: str) -> str:
        """Wait until the output holds the text. Return all of it."""
        self.server.wait_until(lambda: text in self._log.read_text(), seconds=PATIENCE)
        return self._log.read_text()

    def stop(self) -> None:
        """Stop it as Ctrl-C does, which a terminal sends to all that it runs."""
        os.killpg(self.server.pid, signal.SIGINT)
        self.server.stop()


@pytest.fixture
def local(repository: Repository, tmp_path: Path) -> Iterator[Local]:
    """It runs on this machine."""
    started = Local(repository, tmp_path, free_port())
    yield started
    started.server.stop()


def commands(printed: str) -> list[str]:
    """Return the curl commands that the start text shows."""
    return re.findall(r"^  (curl .*?)(?=\n\n)", printed, re.MULTILINE | re.DOTALL)


def paste(command: str) -> dict[str, object]:
    """Run a shown command in a shell; its JSON."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_it_runs_and_a_flow_that_changes_is_loaded_again(
    repository: Repository, local: Local, tmp_path: Path
) -> None:
    printed = local.wait_for("Ctrl-C stops.")
    put, history = commands(printed)
    assert paste(put)["key"] == "hello"
    repository.run(".venv/bin/duetick", "schedules", "run", "hello")
    local.wait_for("garden (here) to you: hello")

    repository.change("flows/greetings.py", "{settings.sender} to", "{settings.sender} says to")
    local.wait_for("flows/greetings.py: loaded again, 1 flow, 1 action.")
    repository.run(".venv/bin/duetick", "schedules", "run", "hello")
    local.wait_for("garden (here) says to you: hello")

    repository.change("settings.local.json", "garden (here)", "gardeners")
    local.wait_for("settings.local.json: loaded again")
    repository.run(".venv/bin/duetick", "schedules", "run", "hello")
    local.wait_for("gardeners says to you: hello")

    (repository.folder / "flows/wrong.py").write_text("\ndef (:\n")
    said = local.wait_for("flows/wrong.py: not loaded, the flows of before stay. The flows cannot")
    assert re.search(r"flows/wrong\.py:2: SyntaxError: ", said)
    (repository.folder / "flows/wrong.py").unlink()
    local.wait_for("flows/wrong.py: loaded again")
    repository.change("flows/greetings.py", "{settings.sender} says to", "{settings.sender} to")

    (url,) = set(re.findall(r"(http://\S+)/openapi\.json", printed))
    assert paste(f"curl -s {url}/openapi.json")["info"]["version"] == VERSION  # type: ignore[index]
    local.stop()
    again = Local(repository, tmp_path, int(url.rpartition(":")[2]))
    again.wait_for("Ctrl-C stops.")
    assert isinstance(paste(history)["history"], list)  # the token of before
    bob = repository.run("sh", "-c", ".venv/bin/duetick token --user bob 2>/dev/null").strip()
    theirs = f"curl -s {url}/api/schedules -H 'Authorization: Bearer {bob}'"
    assert paste(theirs) == {"schedules": [], "cursor": None}
    again.server.stop()


@pytest.fixture(scope="module")
def bare(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the client alone."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    python = working_python("a client")
    run([python, "-m", "venv", "--without-pip", place])
    wheel = f"{repository.folder / 'wheels' / WHEEL}[client]"
    pip: list[str | Path] = [python, "-m", "pip", "--python", place / "bin/python", "install", "-q"]
    run([*pip, wheel], env=environment())
    return place / "bin"


def test_a_client_alone_installs_nothing_else(bare: Path) -> None:
    (site,) = bare.parent.glob("lib/python3*/site-packages")
    assert sorted(one.name for one in distributions(path=[str(site)])) == ["duetick", "tzdata"]
    script = (
        "from duetick.client import ApiError, Client\n"
        "try: Client('http://127.0.0.1:9', token='t').get('k')\n"
        "except ApiError as problem: print(problem.code)\n"
    )
    assert run([bare / "python", "-c", script]) == "unreachable\n"


def test_a_flow_can_be_declared_where_nothing_else_is_installed(bare: Path) -> None:
    script = (
        "from duetick import Flow\nflow = Flow('f')\n@flow.action('a')\n"
        "def act(text: str, ctx: object) -> None: ...\nprint(len(flow.actions))\n"
    )
    assert run([bare / "python", "-c", script]) == "1\n"


def test_the_command_says_which_extra_is_missing(bare: Path) -> None:
    done = subprocess.run([bare / "duetick", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    needs = r"duetick: the command needs \w+, which is not installed\. "
    assert re.fullmatch(needs + r"Do: pip install 'duetick\[cli\]'\n", done.stderr)


def test_a_store_whose_driver_is_missing_names_its_extra(repository: Repository) -> None:
    command: list[str | Path] = [
        repository.bin / "duetick",
        "verify",
        "--store",
        "postgresql://u:p@127.0.0.1:9/d",
    ]
    done = subprocess.run(
        command,
        cwd=repository.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    needed = "the command needs pg8000, which is not installed. Do: pip install 'duetick[postgres]'"
    assert done.stderr == f"duetick: {needed}\n"


@pytest.mark.parametrize("note", ["", "garbage", "[]"])
def test_a_deployable_whose_note_is_broken_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: str
) -> None:
    stack = tmp_path / "stack"
    shutil.copytree(deployable(), stack)
    (stack / ".made-from").write_text(note)
    monkeypatch.setattr(package, "_archive_layer", lambda _layer, into: into.write_bytes(b""))
    assert make(stack)
    assert not make(stack)


def came_from(monkeypatch: pytest.MonkeyPatch, **told: object) -> None:
    """Let Duetick be installed from elsewhere, as pip notes it."""
    for name, value in offline().items():
        monkeypatch.setenv(name, value)
    noted = json.dumps(told)

    class Installed:
        def read_text(self, name: str) -> str | None:
            return noted if name == "direct_url.json" else None

    monkeypatch.setattr(new, "distribution", lambda _name: Installed())


def test_a_commit_of_a_repository_stays_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = {"vcs": "git", "commit_id": "8c59b4d6", "requested_revision": "main"}
    came_from(monkeypatch, url="https://git.example.com/duetick.git", vcs_info=noted)
    assert main(["new", str(tmp_path / "garden")]) == 0
    asked = "duetick[cli,testing] @ git+https://git.example.com/duetick.git@8c59b4d6\n"
    assert asked in (tmp_path / "garden/requirements.txt").read_text()


def test_an_archive_of_the_sources_is_built_into_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--sdist",
        "--no-isolation",
        "--outdir",
        tmp_path,
    ]
    run([*build, TOP])
    archive = tmp_path / f"duetick-{VERSION}.tar.gz"
    came_from(monkeypatch, url=archive.as_uri(), archive_info={})
    assert main(["new", str(tmp_path / "garden")]) == 0
    assert [path.name for path in (tmp_path / "garden/wheels").iterdir()] == [WHEEL]


def test_a_repository_that_cannot_be_made_leaves_nothing_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checkout").mkdir()
    came_from(monkeypatch, url=(tmp_path / "checkout").as_uri(), dir_info={})
    assert main(["new", str(tmp_path / "garden")]) == 1
    assert "pip failed" in capsys.readouterr().err
    assert not (tmp_path / "garden").exists()


def test_what_builds_the_wheel_is_fetched_if_this_python_has_it_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    came_from(monkeypatch, url=TOP.as_uri(), dir_info={})
    monkeypatch.setattr(own_wheel, "BUILDER", "a_builder_that_is_not_here")
    assert main(["new", str(tmp_path / "garden")]) == 1  # for here pip asks no index
    assert "No matching distribution found for hatchling" in capsys.readouterr().err


@pytest.fixture(scope="module")
def linked(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository made by a Duetick that pip found beside its options, not in an index."""
    place, wheels = tmp_path_factory.mktemp("linked"), repository.folder / "wheels"
    made = place / "garden"
    run([working_python("a command"), "-m", "venv", place / "venv"])
    pip: list[str | Path] = [place / "venv/bin/python", "-m", "pip", "install", "-q"]
    run([*pip, "--find-links", wheels, "duetick[cli]"], env=environment())
    said = run([place / "venv/bin/duetick", "new", made], env=environment())
    assert f"pip finds duetick {VERSION} in no index: a wheel of what runs here is in" in said
    return Repository(made)


def test_a_duetick_that_came_from_no_index_brings_its_wheel(
    repository: Repository, linked: Repository
) -> None:
    assert linked.as_made == repository.as_made
    ours, theirs = (ZipFile(one.folder / "wheels" / WHEEL) for one in (repository, linked))
    assert sorted(ours.namelist()) == sorted(theirs.namelist())
    for name in ours.namelist():
        if not name.endswith("RECORD"):
            assert ours.read(name) == theirs.read(name), name


def test_its_tests_pass_with_the_wheel_that_was_put_together_again(linked: Repository) -> None:
    assert "2 passed" in linked.run("make", "test")


def test_deploy_says_before_it_builds_that_sam_is_missing(repository: Repository) -> None:
    plain = {**environment(), "PATH": "/usr/bin:/bin"}
    deploy = ["make", "deploy"]
    done = subprocess.run(
        deploy, cwd=repository.folder, env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("There is no sam here, which deploys: install the AWS SAM CLI,")
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["null", "true", "no"])
def test_a_name_that_yaml_takes_for_something_else_stays_a_text(tmp_path: Path, name: str) -> None:
    assert main(["new", str(tmp_path / name)]) == 0
    template = read_template((tmp_path / name / "template.yaml").read_text())
    assert template["Mappings"]["Settings"]["prod"]["Sender"] == name


@pytest.mark.parametrize(
    ("name", "better"),
    [("my_app", "my-app"), ("1st", "st"), ("über", "ber"), ("a--b", "a-b"), ("x" * 81, "x" * 80)],
)
def test_a_name_that_no_stack_can_have_is_refused_with_a_better_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, better: str
) -> None:
    assert main(["new", str(tmp_path / name)]) == 2
    told = capsys.readouterr().err
    assert f"{name!r} cannot be the name of a stack" in told
    assert f"For example {better}." in told
    assert [*tmp_path.iterdir()] == []


def test_nothing_that_is_there_is_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden/Makefile").write_text("mine")
    (tmp_path / "shed").write_text("mine")
    for name in ("garden", "shed"):
        assert main(["new", str(tmp_path / name)]) == 1
        assert "is there already, and is not empty. Nothing was written." in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "garden").iterdir()] == ["Makefile"]
