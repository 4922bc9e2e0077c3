"""The TypeScript client as an application has it: packed, installed, compiled, run."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents import blocks
from tests.integration.local_product import NINE, Clock, Product, product
from tests.lab.node import WEB, node, node_modules, npm
from tests.lab.process import run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of an application that has installed the client's package."""
    folder = tmp_path_factory.mktemp("application")
    run([npm(), "pack", "--silent", "--offline", WEB / "client"], cwd=folder)
    [packed] = folder.glob("*.tgz")
    installed = folder / "node_modules" / "duetick"
    installed.mkdir(parents=True)
    run(["tar", "-xzf", packed, "--strip-components=1", "-C", installed])
    for name in ("app.ts", "mistakes.ts", "tsconfig.json"):
        shutil.copy(WEB / "sample" / name, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def compiled(folder: Path, *names: str) -> str:
    """Return the compiler's output for files there; empty if they are right."""
    config = json.loads((folder / "tsconfig.json").read_text()) | {"include": names}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    tsc = node_modules() / "typescript" / "bin" / "tsc"
    done = subprocess.run([node(), tsc], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture(scope="module")
def told(application: Path) -> str:
    """Return the compiler's output for the application, the mistakes and the README's code."""
    session = "declare const session: { idToken(): Promise<string> };\n"
    for place, code in enumerate(blocks("ts")):
        (application / f"shown{place}.ts").write_text(session + code)
    return compiled(application, "*.ts")


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    with product(f"sqlite:///{tmp_path}/typescript.db", Clock(NINE), monkeypatch) as made:
        yield made


def test_the_package_holds_the_client_and_nothing_else(application: Path) -> None:
    files = [path for path in (application / "node_modules").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == [
        "api.d.ts", "index.d.ts", "index.js", "package.json",
    ]  # fmt: skip


def test_an_application_compiles_and_its_calls_do_what_they_say(
    application: Path, running: Product, told: str
) -> None:
    assert "app.ts" not in told
    said = json.loads(
        run(
            [node(), application / "made" / "app.js"],
            env={
                **os.environ,
                "DUETICK_URL": running.stack.server.url,
                "DUETICK_TOKEN": running.stack.token,
            },
        )
    )
    assert said == {
        "next": "2026-12-07T09:00:00Z",
        "dry": True,
        "same": True,
        "keys": sorted(said["keys"]),
        "history": [],
        "refused": [
            {"error": "invalid_schedule", "fields": ["/cron"]},
            {"error": "invalid_schedule", "fields": ["/cron"]},
        ],
        "timezone": "Asia/Tokyo",
        "conflict": "version_conflict",
        "words": "At 02:30, every day, in UTC.",
    }
    assert len(said["keys"]) == 2
    assert [one["key"] for one in running.client().list()] == ["a/b ~ ü"]


def test_what_the_readme_shows_compiles(told: str) -> None:
    assert blocks("ts")
    assert "shown" not in told


def test_each_mistake_fails_to_compile(told: str) -> None:
    assert "mistakes.ts" not in told


def test_a_mistake_that_compiles_is_found(application: Path) -> None:
    (application / "wrong.ts").write_text(
        "import { Duetick } from 'duetick';\n"
        "// @ts-expect-error This is right, so nothing meets the expectation.\n"
        "await new Duetick({ url: '' }).get('/api/schedules');\n"
    )
    assert "TS2578" in compiled(application, "wrong.ts")


def test_the_client_waits_repeats_and_refuses_as_it_says() -> None:
    client = (WEB / "client" / "lib" / "index.js").as_uri()
    cases = Path(__file__).with_name("client.test.mjs")
    told = run([node(), "--test", cases], env={**os.environ, "DUETICK_CLIENT": client})
    assert "# fail 0" in told
    assert "# tests 13" in told
