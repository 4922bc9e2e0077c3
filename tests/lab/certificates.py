"""Certificates of this machine's own, which nobody trusts unless told to."""

import subprocess
from pathlib import Path

SELF_SIGNED = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
LOCAL = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")


def certificate(folder: Path, name: str) -> Path:
    """A certificate for this machine that signs itself, and its key, in one file."""
    made = folder / f"{name}.pem"
    key = folder / f"{name}.key"
    subprocess.run(
        [*SELF_SIGNED, *LOCAL, "-keyout", key, "-out", made],
        check=True,
        capture_output=True,
    )
    made.write_text(made.read_text() + key.read_text())
    return made
