"""I-10: this version and the next at work on one database, forwards and back, and no fire is lost.

Each version is a process of its own. The next one has one more step of the schema, one more policy,
and a begin that writes the new column; `tests/lab/next_version.py` makes it from the tree.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from duetick.version import VERSION

from tests.integration.local_product import NINE
from tests.lab.cache import TOP
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.next_version import NEXT, POLICY, contract, make_next

MINUTE = 60_000
WORKER = Path(__file__).with_name("release_worker.py")
PLAIN = [f"plain-{n}" for n in range(6)]
FLAKY = [f"flaky-{n}" for n in range(4)]
MOODY = [f"moody-{n}" for n in range(4)]
AT_LEAST_ONCE = {"delivery": "at_least_once", "retry": {"backoff": "fixed", "first": 1}}

pytestmark = pytest.mark.slow


class Version:
    """A process of a version, on a store."""

    def __init__(self, package: Path, address: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, WORKER, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(package.parent)},
        )
        self.now = NINE

    def begin(self, do: str, **given: object) -> None:
        """Give it an order, and do not wait."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": do, "now": self.now, **given}) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Wait for its answer."""
        assert self._process.stdout
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def do(self, do: str, **given: object) -> Any:  # noqa: ANN401 -- JSON of any kind
        """Give it an order that it obeys."""
        self.begin(do, **given)
        answer = self.end()
        assert "done" in answer, answer
        return answer["done"]

    def stop(self) -> None:
        """End it."""
        self._process.communicate()


Start = Callable[[Path], Version]


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the next version."""
    return make_next(tmp_path_factory.mktemp("next"))


@pytest.fixture(scope="module")
def contracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the package of a version whose schema serves that version alone."""
    package = make_next(tmp_path_factory.mktemp("contracted"))
    contract(package)
    return package


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of a kind, with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/app.db"
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    server: DynamoDB = request.getfixturevalue("dynamodb_local")
    return server.table_url(table_name())


@pytest.fixture
def start(address: str) -> Iterator[Start]:
    """Starts versions on that database."""
    started: list[Version] = []

    def begin(package: Path) -> Version:
        started.append(Version(package, address))
        return started[-1]

    yield begin
    for one in started:
        one.stop()


CURRENT = TOP / "layers/duetick/duetick"


class Rollout:
    """Versions that tick, minute for minute, and all that fired."""

    def __init__(self) -> None:
        self.fired: list[tuple[str, str, int, int]] = []
        self.now = NINE

    def minute(self, *versions: Version) -> None:
        """Let a minute pass. These versions tick in it at once, and again for the retries."""
        self.now += MINUTE
        for seconds in (0, 5):
            for one in versions:
                one.now = self.now + seconds * 1_000
                one.begin("tick")
            for one in versions:
                answer = one.end()
                self.fired += [tuple(fire) for fire in answer["done"]]

    def succeeded(self) -> Counter[tuple[str, int]]:
        """Count the successful runs of each time of each schedule."""
        return Counter(
            (name, at)
            for _, name, at, attempt in self.fired
            if "/flaky" not in name or attempt > 1
        )  # fmt: skip


@pytest.mark.parametrize("address", ["sqlite", "postgres", "dynamodb"], indirect=True)
def test_i10_an_upgrade_a_rollback_and_another_upgrade_lose_no_fire(
    start: Start, following: Path
) -> None:
    old, rollout = start(CURRENT), Rollout()
    old.do("migrate")
    old.do("put", keys=PLAIN, policies={})
    old.do("put", keys=FLAKY, policies=AT_LEAST_ONCE)
    rollout.minute(old)

    new = start(following)  # the schema first, and old functions go on
    new.do("migrate")
    rollout.minute(old)
    old.do("check")

    new.now = rollout.now + 10_000  # both work; one puts what the other does not know
    new.do("put", keys=MOODY, policies={POLICY: "calm"})
    for _ in range(3):
        rollout.minute(old, new)
    old.do("pause", key="moody-0")
    rollout.minute(old, new)
    old.do("resume", key="moody-0")

    for _ in range(2):  # rolled back: the schema stays
        rollout.minute(old)
    rollout.minute(old, new)  # and deployed again
    rollout.minute(new)

    old.now = new.now
    assert old.do("verify", since=NINE)[0] == []
    faults, times = new.do("verify", since=NINE)
    assert faults == []
    ran = rollout.succeeded()
    assert set(ran.values()) == {1}
    assert times == len(ran) + 1  # the one that was paused
    assert {version for version, *_ in rollout.fired} == {VERSION, NEXT}
    for key in ("moody-0", "moody-1"):
        assert json.loads(new.do("policies", key=key)) == {POLICY: "calm"}


@pytest.mark.parametrize("address", ["postgres", "dynamodb"], indirect=True)
def test_i10_functions_of_before_a_contraction_are_refused_and_lose_nothing(
    start: Start, contracted: Path
) -> None:
    old, rollout = start(CURRENT), Rollout()
    old.do("migrate")
    old.do("put", keys=PLAIN, policies={})
    rollout.minute(old)
    new = start(contracted)
    new.do("migrate")
    old.now = rollout.now + MINUTE
    old.begin("check")
    assert "Deploy a newer release" in old.end()["refused"]
    rollout.minute(new)
    faults, times = new.do("verify", since=NINE)
    assert (faults, times) == ([], 2 * len(PLAIN))
    assert set(rollout.succeeded().values()) == {1}
