"""`duetick costs` takes no less for granted than the functions read and log."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.endpoint import answering
from tests.benchmarks.storage import on_dynamodb, on_postgres, taken
from tests.lab.dynamodb import DynamoDB, table_name

TOP = Path(__file__).parents[2]
SHOWN = {
    "api": ("tick", "fire", "dispatch"),
    "packs": ("packed", "lone", "pack"),
    "bells": ("ring", "bell"),
}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("way", ["api", "packs", "bells"])
def test_what_the_functions_use_is_at_most_what_is_calculated_with(
    dynamodb_local: DynamoDB, way: str
) -> None:
    with answering(0.0) as port:
        told = {
            "DUETICK_STORE": dynamodb_local.table_url(table_name()),
            "DUETICK_API_URL": f"http://127.0.0.1:{port}/v1",
            "AWS_REGION": "us-east-1",
        }
        command = [sys.executable, "-m", "tests.benchmarks.usage", "dynamodb", way]
        done = subprocess.run(
            command,
            cwd=TOP,
            env={**os.environ, **told},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"dynamodb  {name} " in done.stdout for name in SHOWN[way])


def test_a_schedule_and_a_fire_take_no_more_of_a_database_than_is_calculated_with(
    moto: DynamoDB, postgres_url: str
) -> None:
    found = {"DynamoDB": on_dynamodb(moto), "Postgres": on_postgres(postgres_url)}
    for name, limit in taken().items():
        assert limit.schedule / 1.5 < found[name].schedule <= limit.schedule
        assert limit.fire / 1.5 < found[name].fire <= limit.fire
