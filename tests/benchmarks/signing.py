"""The signature of each call that is measured."""

import time

from duetick.network.sigv4 import Credentials, Signer
from duetick.transports.http import Headers

SIGNER = Signer(lambda: Credentials("AKID", "secret", "token"), "eu-central-1")


def signed(host: str, path: str, body: bytes, *, refused: Headers | None = None) -> Headers:
    """Sign as the deployed tick does."""
    del refused
    return SIGNER.headers(host, path, body, time.time_ns() // 1_000_000)
