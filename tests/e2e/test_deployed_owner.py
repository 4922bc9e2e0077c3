"""A stack whose functions own nothing of their database; and one that is given another database."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Deployed, deploy
from tests.lab.emulated_aws import EmulatedAws
from tests.lab.postgres import EmbeddedPostgres, connect, with_database
from tests.lab.sam import Sam

USER = "duetick_functions"

pytestmark = pytest.mark.slow


def owners(url: str) -> list[list[str]]:
    """Return the owners of Duetick's tables."""
    with connect(url) as admin:
        found: list[list[str]] = admin.run(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
        )
        return found


def addresses(url: str) -> dict[str, str]:
    """Return the addresses of a database: as the functions' user, and as its owner."""
    return {
        "PostgresAddress": url.replace("//postgres@", f"//{USER}@"),
        "PostgresOwnerAddress": url,
    }


def test_i10_each_database_that_a_stack_is_given_is_migrated_as_its_owner(
    sam: Sam,
    emulated_aws: EmulatedAws,
    quiet: Path,
    parameters: dict[str, str],
    own_postgres: EmbeddedPostgres,
) -> None:
    secrets = emulated_aws.client("secretsmanager")
    secret = secrets.create_secret(Name="owned", SecretString=json.dumps({"password": "any"}))
    arns = dict.fromkeys(("PostgresSecretArn", "PostgresOwnerSecretArn"), secret["ARN"])
    there = {**parameters, "Backend": "postgres", **arns}
    first, second = own_postgres.tcp_url, with_database(own_postgres.tcp_url, "second")
    with connect(first) as admin:
        admin.run("CREATE DATABASE second")
    stack = deploy(sam, emulated_aws, quiet, "duetick-owned", {**there, **addresses(first)})
    assert works(stack, first)
    stack.deploy(parameters=addresses(second))
    assert works(stack, second)


def works(stack: Deployed, url: str) -> bool:
    """Return True if a tick and the hourly count work, and the functions own nothing there."""
    assert stack.invoke("TickFunction", {})["failed"] == 0
    assert stack.invoke("MigrateFunction", {"Step": "audit"})["active"] >= 1
    return owners(url) == [["postgres"]]
