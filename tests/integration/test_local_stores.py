"""T-04: `make run` on each store: an action's transaction speaks as the store does, or it ends."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from duetick.cli.main import main
from duetick.domain.errors import InvalidStoreUrl
from duetick.domain.schedule import Schedule
from duetick.domain.states import State
from duetick.runtime import wiring
from duetick.stores import open_store
from duetick.testing import fire

from tests.delivery.scene import EFFECTIVELY_ONCE
from tests.integration.local_product import NINE, TOP, Clock, product
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.process import free_port

SHOP = """
from duetick import Flow

shop = Flow("shop")


@shop.action("pay", transactional={speaks!r})
def pay(_given: object, ctx) -> None:
    with ctx.transaction() as effects:
        if effects.dialect == "sql":
            effects.run("CREATE TABLE paid (occurrence text)")
            effects.run("INSERT INTO paid VALUES (:id)", id=ctx.occurrence_id)
        else:
            item = {{"p": {{"S": "paid"}}, "s": {{"S": ctx.occurrence_id}}}}
            effects.write({{"Put": {{"TableName": {table!r}, "Item": item}}}})
"""
"""On DynamoDB the effect is an item of a table that is there: the store's own."""


@pytest.fixture(params=["sqlite", "postgres", "dynamodb_local", "moto"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/local.db"
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(request.getfixturevalue(request.param).table_url(table_name()))


@pytest.fixture
def shop(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a package of flows. One of them pays in the store's own dialect."""
    package = tmp_path / "shops"
    package.mkdir()
    write(package, address, "dynamodb" if address.startswith("dynamodb") else "sql")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DUETICK_FLOWS", "shops")
    yield package
    sys.modules.pop("shops", None)


def write(package: Path, address: str, speaks: str) -> None:
    """Write the flow's source."""
    table = address.removeprefix("dynamodb://").partition("?")[0]
    (package / "__init__.py").write_text(SHOP.format(speaks=speaks, table=table))


def test_t04_effectively_once_fires_on_the_local_stack(
    address: str, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del shop
    clock = Clock(NINE - 60_000)
    with product(address, clock, monkeypatch) as made:
        made.store.migrate()
        once = Schedule("you", "r", "0 9 * * *", "shop", "pay", policies=EFFECTIVELY_ONCE)
        made.store.schedules.put(once, now=clock.now)
        clock.now = NINE
        assert made.tick()["delivered"] == 1
        (ended,) = made.store.ledger.find("you", "r")
    assert (ended.state, ended.attempts) == (State.SUCCEEDED, 1)


def test_t04_effectively_once_is_tried_on_a_stage_with_that_store(address: str, shop: Path) -> None:
    del shop
    flow = vars(import_module("shops"))["shop"]
    once = Schedule("you", "r", "0 9 * * *", "shop", "pay", policies=EFFECTIVELY_ONCE)
    assert fire(flow, once, store=address).state == "succeeded"


def test_t04_the_local_stack_does_not_start_with_what_its_store_does_not_speak(
    address: str, shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(shop, address, "sql" if address.startswith("dynamodb") else "dynamodb")
    port = str(free_port())
    assert main(["local", "--project", str(TOP), "--port", port, "--store", address]) == 1
    wiring.store().close()
    assert "shop.pay is declared with transactional=" in capsys.readouterr().err


def test_a_dynamodb_of_this_machine_needs_no_credentials(
    moto: DynamoDB, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = open_store(moto.table_url(table_name()))
    store.migrate()
    store.check_schema()
    store.close()


def test_a_table_without_a_region_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InvalidStoreUrl, match="region=eu-west-1"):
        open_store("dynamodb://table?endpoint=http://127.0.0.1:1")


def test_make_run_takes_an_address_as_it_is() -> None:
    address = "dynamodb://duetick?region=eu-west-1&endpoint=http://localhost:8000"
    printed = subprocess.run(
        ["make", "-n", "run", f"STORE={address}"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    )
    (started,) = [line for line in printed.stdout.splitlines() if "duetick local" in line]
    assert shlex.split(started)[-1] == address
