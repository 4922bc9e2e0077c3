"""A deployment imports the store that it was given, and no other database's client."""

import subprocess
import sys
from pathlib import Path

import botocore
import pytest
from duetick.stores import open_store

from tests.lab.dynamodb import DynamoDB, table_name

USED = """
import sys
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
store = open_store(sys.argv[1])
store.check_schema()
store.schedules.put(Schedule("ada", "digest", "0 12 * * *", "flow", "act"), now=0)
for occurrence in store.index.claim_due(24 * 3_600_000):
    store.ledger.begin(occurrence)
store.close()
print(*sorted(sys.modules))
"""
OPENED = """
import sys
from duetick.stores import open_store
open_store(sys.argv[1])
print(*sorted(sys.modules))
"""
DYNAMODB = "dynamodb://t?region=us-east-1&endpoint=http://127.0.0.1:1"
POSTGRES = "postgresql://nobody@127.0.0.1:1/nothing"
AUTHORITIES = Path(botocore.__file__).with_name("cacert.pem")
WITH_TOKENS = f"{POSTGRES}?iam=true&region=us-east-1&sslmode=verify-full&sslrootcert={AUTHORITIES}"
CLIENTS = {"boto3", "botocore", "pg8000", "sqlite3"}


def loaded(code: str, url: str) -> set[str]:
    """Return the clients that a process has loaded in the end."""
    done = subprocess.run(
        [sys.executable, "-c", code, url], capture_output=True, text=True, check=True
    )
    return CLIENTS & set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "clients"),
    [
        (DYNAMODB, set()),
        (POSTGRES, {"pg8000"}),
        (WITH_TOKENS, {"pg8000", "botocore"}),
        ("sqlite://", {"sqlite3"}),
    ],
)
def test_a_store_that_is_opened_loads_its_own_client_alone(url: str, clients: set[str]) -> None:
    assert loaded(OPENED, url) == clients


@pytest.mark.slow
def test_a_postgres_that_is_used_never_loads_boto3(postgres_url: str) -> None:
    store = open_store(postgres_url)
    store.migrate()
    store.close()
    assert loaded(USED, postgres_url) == {"pg8000"}


@pytest.mark.slow
def test_a_dynamodb_that_is_used_never_loads_pg8000(moto: DynamoDB) -> None:
    url = moto.table_url(table_name())
    store = open_store(url)
    store.migrate()
    store.close()
    assert loaded(USED, url) == set()
