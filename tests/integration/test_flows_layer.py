"""`duetick layer`: the flows of a team with their packages, beside the packages of Duetick's
layers.
"""

import os
from pathlib import Path
from typing import Final

import pytest
from duetick.cli.flows_layer import own_pins
from duetick.cli.folders import digest
from duetick.cli.main import main
from duetick.version import VERSION

from tests.lab.wheels import offline, write_wheel

pytestmark = pytest.mark.slow  # each runs pip

PINS: Final = own_pins()


class Project:
    """A folder with flows, and wheels that pip finds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        (folder / "flows/inner").mkdir(parents=True)
        (folder / "flows/__init__.py").write_text("")
        (folder / "flows/inner/garden.py").write_text("import stamps\n")

    def write(self, name: str, version: str, *requires: str) -> None:
        """Publish a package to them."""
        write_wheel(self.wheels, name, version, f"NAME = {name!r}\n", *requires)

    def build(self, *requirements: str, into: str = "layer") -> int:
        """Make the layer. Return the exit code."""
        asked = self.folder / "flows/requirements.txt"
        asked.write_text("\n".join(requirements))
        os.environ["PIP_FIND_LINKS"] = f"{self.wheels} {offline()['PIP_FIND_LINKS']}"
        words = ["--requirements", str(asked), "--to", str(self.folder / into)]
        return main(["layer", str(self.folder / "flows"), *words, "--architecture", "x86_64"])

    def files(self, into: str = "layer") -> set[str]:
        """Return the files of a folder, without those that Python compiled."""
        python = self.folder / into / "python"
        found = (path.relative_to(python) for path in python.rglob("*") if path.is_file())
        return {str(path) for path in found if "__pycache__" not in path.parts}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a team's project, which asks no package index."""
    for name, value in offline().items():
        monkeypatch.setenv(name, value)
    return Project(tmp_path)


FLOWS = {"flows/__init__.py", "flows/inner/garden.py"}


def test_the_layer_holds_the_flows_and_what_they_need_and_nothing_that_duetick_brings(
    project: Project,
) -> None:
    project.write("stamps", "1.0", "six>=1", "ours>=2")
    project.write("ours", "2.1", "duetick>=0.1")
    write_wheel(project.wheels, "duetick", VERSION)
    assert project.build("stamps==1.0", "pydantic") == 0
    packages = {path.partition("/")[0] for path in project.files() - FLOWS}
    assert packages == {"stamps.py", "ours.py", "stamps-1.0.dist-info", "ours-2.1.dist-info"}
    assert project.files() >= FLOWS


def test_flows_that_need_nothing_are_a_layer_too(project: Project) -> None:
    assert project.build("# nothing yet") == 0
    assert project.files() == FLOWS


def test_the_layer_is_the_same_from_two_folders_so_that_nothing_is_deployed_for_nothing(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Project(tmp_path_factory.mktemp("elsewhere"))
    for one in (project, other):
        one.write("stamps", "1.0")
        one.write("letters", "1.0")
        assert one.build("stamps", "../wheels/letters-1.0-py3-none-any.whl") == 0
    compiled = [*(project.folder / "layer").rglob("garden*.pyc")]
    assert len(compiled) == 1
    files = [sorted((one.folder / "layer").rglob("*")) for one in (project, other)]
    contents = [
        {path.relative_to(one.folder): path.read_bytes() for path in each if path.is_file()}
        for one, each in zip((project, other), files, strict=True)
    ]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("asked", [["pydantic==1.10.0"], ["needs-old==1.0"]])
def test_a_requirement_that_contradicts_duetick_says_with_what(
    project: Project, capsys: pytest.CaptureFixture[str], asked: list[str]
) -> None:
    project.write("pydantic", "1.10.0")
    project.write("needs_old", "1.0", "pydantic<2")
    assert project.build() == 0
    before = digest([project.folder / "layer"])
    assert project.build(*asked) == 1
    told = capsys.readouterr().err
    assert f"Duetick's own layers bring pydantic {PINS['pydantic']}" in told
    assert "ask for a range that has it in it" in told
    assert "Traceback" not in told
    assert digest([project.folder / "layer"]) == before


def test_a_requirement_that_lambda_cannot_run_says_what_lambda_takes(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = write_wheel(project.wheels, "stamps", "1.0")
    wheel.rename(wheel.with_name("stamps-1.0-cp313-cp313-macosx_11_0_arm64.whl"))
    assert project.build("stamps") == 1
    assert (
        "Lambda runs Python 3.13 on x86_64: each requirement needs a wheel for that"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["nowhere", "duetick"])
def test_only_a_package_of_ones_own_is_put_into_it(
    project: Project, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (project.folder / "duetick").mkdir()
    words = ["--to", str(project.folder / "layer")]
    assert main(["layer", str(project.folder / name), *words]) == 1
    assert f"{name} is no package of yours" in capsys.readouterr().err
    assert not (project.folder / "layer").exists()


@pytest.mark.parametrize("into", [".", "flows", "flows/inner", "flows/layer", "tests", "notes"])
def test_a_layer_takes_the_place_of_nothing_but_a_layer(
    project: Project, capsys: pytest.CaptureFixture[str], into: str
) -> None:
    (project.folder / "tests").mkdir()
    (project.folder / "tests/test_garden.py").write_text("")
    (project.folder / "notes").write_text("mine")
    (project.folder / "flows/requirements.txt").write_text("")
    before = digest([project.folder])
    assert project.build(into=into) == 1
    assert "has something else in it. Name another folder: --to." in capsys.readouterr().err
    assert digest([project.folder]) == before


def test_requirements_that_are_not_there_are_named(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--requirements", "nowhere.txt", "--to", str(project.folder / "layer")]
    assert main(["layer", str(project.folder / "flows"), *words]) == 1
    assert "There is no file nowhere.txt." in capsys.readouterr().err


def test_the_folder_of_a_project_is_no_package(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    assert main(["layer", ".", "--to", "layer"]) == 1
    assert ". is no package of yours." in capsys.readouterr().err
