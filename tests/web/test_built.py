"""The built pages are of these sources, small, all of them from here, and in no function."""

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest
from duetick.version import VERSION

from tests.lab.cache import TOP
from tests.lab.layer import make_layer
from tests.lab.node import WEB, node, node_modules
from tests.lab.pages import BUILT, build, contents
from tests.lab.process import run

PAGES: Final = BUILT["pages"]
FIRST: Final = ("console.html", "console.css", "opening.js", "console.js", "icon.svg")
MOST: Final = 100_000
"""The bytes of the first page, with all that it loads, unpacked."""

NAMESPACE: Final = "http://www.w3.org/2000/svg"


@pytest.mark.slow
def test_what_is_checked_in_is_built_of_these_sources(tmp_path: Path) -> None:
    build(tmp_path)
    for name, place in BUILT.items():
        assert contents(tmp_path / name) == contents(place), f"{name}: run `make pages`"


@pytest.mark.slow
def test_every_source_is_typed_strictly() -> None:
    tsc = node_modules() / "typescript" / "bin" / "tsc"
    assert run([node(), tsc, "-p", WEB / "tsconfig.json"]) == ""
    chosen = json.loads((WEB / "tsconfig.json").read_text())["compilerOptions"]
    assert chosen["strict"]
    assert chosen["noUncheckedIndexedAccess"]
    sources = [path.read_text() for path in WEB.rglob("*.ts") if "lib" not in path.parts]
    assert len(sources) > 15
    for text in sources:
        assert not re.search(r"@ts-(?:ignore|nocheck)|: any\b|as any\b|innerHTML|outerHTML", text)


def test_the_first_page_is_small() -> None:
    assert sum((PAGES / name).stat().st_size for name in FIRST) < MOST


def test_a_page_loads_nothing_from_elsewhere() -> None:
    for path in PAGES.iterdir():
        found = re.findall(r"""(?:https?:)?//[\w.-]+\.\w+[^\s"'`)]*""", path.read_text())
        assert set(found) <= {NAMESPACE}, path.name


def test_the_client_has_the_version_of_the_package() -> None:
    client = json.loads((WEB / "client" / "package.json").read_text())
    assert (client["version"], client["name"]) == (VERSION, "duetick")
    assert not client.get("dependencies")


def test_no_page_is_in_the_layer(tmp_path: Path) -> None:
    made = make_layer(tmp_path)
    assert (made / "python/duetick/api/routes.py").is_file()
    of_pages = {".css", ".html", ".js", ".svg", ".ts"}
    assert [path for path in made.rglob("*") if path.suffix in of_pages] == []


@pytest.mark.slow
def test_the_command_is_packed_with_its_pages(tmp_path: Path) -> None:
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(
        ".[!c]*", ".c[!i]*", "tests", "*.egg-info", "build", "__pycache__"
    )
    shutil.copytree(TOP, source, ignore=ignored)
    run([*wheel, "--disable-pip-version-check", "-w", tmp_path, source])
    [packed] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(packed).namelist()
    assert {f"duetick/pages/{path.name}" for path in PAGES.iterdir()} <= set(names)
    assert [name for name in names if name.endswith(".ts")] == []
