"""The tree holds what DESIGN lists, and nothing else; pins stand in agreement."""

import json
import re
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from duetick.version import VERSION
from packaging.requirements import Requirement

from tests.lab.layer import make_layer
from tests.template.parsed import template

TOP = Path(__file__).parents[2]
ALLOWED = {
    "LICENSE",
    "Makefile",
    "README.md",
    "events",
    "functions",
    "layers",
    "pyproject.toml",
    "requirements.lock",
    "samconfig.toml",
    "template.yaml",
    "tests",
}


def tracked() -> list[str]:
    """Return the files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


def pins(path: Path) -> dict[str, str]:
    """Names and versions of a requirements file."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", path.read_text(), re.MULTILINE))


def test_nothing_else_stands_at_the_top_level() -> None:
    top = {name.partition("/")[0] for name in tracked()}
    assert {name for name in top if not name.startswith(".")} <= ALLOWED


def test_every_function_is_a_folder_with_one_thin_app() -> None:
    handlers = sorted(TOP.glob("functions/*/*"))
    code = [path for path in handlers if path.name != "__pycache__"]
    assert {path.name for path in code} == {"app.py"}
    assert {path.parent.name for path in code} == {"dispatch", "migrate", "schedules", "tick"}


def test_no_readme_is_shipped_to_lambda() -> None:
    """Files in a function's folder, or among the flows, are shipped as they are."""
    shipped = [*TOP.glob("functions/*/*.md"), *(TOP / "layers/flows").rglob("*.md")]
    assert shipped == []


def test_the_layer_is_made_without_its_readmes(tmp_path: Path) -> None:
    made = make_layer(tmp_path)
    assert (made / "python/duetick/stores/__init__.py").is_file()
    assert [*made.rglob("*.md")] == []


def test_the_layer_installs_the_versions_that_are_tested() -> None:
    locked = pins(TOP / "requirements.lock")
    deployed = pins(TOP / "layers/deps/requirements.txt")
    assert deployed
    assert {name: locked[name] for name in deployed} == deployed


def requirements(extra: str = "") -> list[Requirement]:
    """Return the package's requirements for an extra, as ranges."""
    project = tomllib.loads(_pyproject())["project"]
    given = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return [Requirement(one) for one in given]


def test_the_layer_brings_each_dependency_of_the_package() -> None:
    deployed = pins(TOP / "layers/deps/requirements.txt")
    wanted = [*requirements(), *requirements("layer")]
    assert len(wanted) > 5
    assert all(one.specifier.contains(deployed[one.name]) for one in wanted)


@pytest.mark.parametrize("extra", ["client", "testing", "cli", "postgres", "dynamodb"])
def test_what_is_tested_is_in_the_ranges_that_a_package_takes(extra: str) -> None:
    locked = pins(TOP / "requirements.lock")
    for one in [*requirements(), *requirements(extra)]:
        assert one.specifier.contains(locked[one.name]), one
        assert ">=" in str(one.specifier), one


def test_the_version_is_the_same_wherever_it_is_said() -> None:
    changes = (TOP / "layers/duetick/CHANGELOG.md").read_text()
    assert re.findall(r"^## ([\d.]+)$", changes, re.MULTILINE)[0] == VERSION
    assert template()["Outputs"]["Version"]["Value"] == VERSION
    document = json.loads(files("duetick.api").joinpath("openapi.json").read_text())
    assert document["info"]["version"] == VERSION
    assert f'version = "{VERSION}"' not in _pyproject()  # it reads duetick/version.py


def test_boto3_stays_out_of_the_layer() -> None:
    assert not {"boto3", "botocore"} & set(pins(TOP / "layers/deps/requirements.txt"))


def test_only_the_pinned_versions_are_installed() -> None:
    unpinned = [
        line
        for line in (TOP / "requirements.lock").read_text().splitlines()
        if line and not line.startswith((" ", "#")) and "==" not in line
    ]
    assert unpinned == []


def _pyproject() -> str:
    return (TOP / "pyproject.toml").read_text()
