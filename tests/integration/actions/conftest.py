"""The targets of webhooks."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.actions.hooks import HOST, OTHER, Hooks, serving

COMMAND = (
    "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
    "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST},DNS:{OTHER}",
)  # fmt: skip


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For both hosts, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "made.pem", folder / "key.pem"
    subprocess.run([*COMMAND, "-keyout", key, "-out", made], check=True, capture_output=True)
    made.write_text(made.read_text() + key.read_text())
    return made


@pytest.fixture
def hooks(certificate: Path) -> Iterator[Hooks]:
    """A running server."""
    with serving(Hooks(certificate=certificate)) as state:
        yield state
