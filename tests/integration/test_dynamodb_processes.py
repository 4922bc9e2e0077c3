"""Eight processes, released at once, claim what is due: each row once, none left."""

import json
import subprocess
import sys

import pytest
from duetick.domain.schedule import IndexRow

from tests.integration.dynamodb_case import NOON, Case
from tests.lab.dynamodb import DynamoDB

CLAIMERS, ROWS = 8, 300
CLAIM = f"""
import json, sys
from duetick.stores import open_store
store = open_store(sys.argv[1], clock=lambda: {NOON})
store.check_schema()
print("ready", flush=True)
sys.stdin.readline()
claimed = []
while chunk := store.index.claim_due({NOON}, 30):
    claimed += [occurrence.user_id for occurrence in chunk]
print(json.dumps(claimed), flush=True)
"""


@pytest.fixture
def dynamodb(dynamodb_local: DynamoDB) -> DynamoDB:
    """Amazon's alone."""
    return dynamodb_local


def start(case: Case, options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM, case.url + options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "&shards=4"])
def test_i05_claimers_of_eight_processes_are_disjoint_and_complete(
    case: Case, options: str
) -> None:
    store = case.migrated(options)
    for number in range(ROWS):
        store.index.upsert(IndexRow(f"u{number}", "k", "* * * * *", None, NOON))
    claimers = [start(case, options) for _ in range(CLAIMERS)]
    for claimer in claimers:
        assert claimer.stdout is not None
        assert claimer.stdout.readline() == "ready\n"
    for claimer in claimers:
        assert claimer.stdin is not None
        claimer.stdin.write("\n")
        claimer.stdin.flush()
    claimed = [json.loads(claimer.communicate()[0]) for claimer in claimers]
    assert sorted(user for part in claimed for user in part) == sorted(
        f"u{number}" for number in range(ROWS)
    )
    assert len([part for part in claimed if part]) > 1
