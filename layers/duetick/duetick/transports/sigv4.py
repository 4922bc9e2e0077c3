"""AWS Signature Version 4 for calls of API Gateway: a few hashes, without botocore's import."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SERVICE: Final = "execute-api"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a Lambda function finds in its environment."""

    access_key: str
    secret_key: str
    token: str | None = None


CredentialsSource: TypeAlias = Callable[[], Credentials]


class Signer:
    """Signs POSTs whose path holds only unreserved characters and slashes."""

    def __init__(self, credentials: CredentialsSource, region: str) -> None:
        self._credentials = credentials
        self._region = region
        self._keys: dict[tuple[str, str], bytes] = {}

    def headers(self, host: str, path: str, body: bytes, now: int) -> dict[str, str]:
        """The headers that authenticate the call; `now` in milliseconds."""
        given = self._credentials()
        moment = datetime.fromtimestamp(now / 1_000, UTC).strftime("%Y%m%dT%H%M%SZ")
        signed = {"host": host, "x-amz-date": moment}
        if given.token:
            signed["x-amz-security-token"] = given.token
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        request = f"POST\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{moment[:8]}/{self._region}/{SERVICE}/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        key = self._key(given.secret_key, moment[:8])
        signature = _mac(key, f"{ALGORITHM}\n{moment}\n{scope}\n{digest}").hex()
        del signed["host"]
        signed["authorization"] = (
            f"{ALGORITHM} Credential={given.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return signed

    def _key(self, secret: str, day: str) -> bytes:
        found = self._keys.get((secret, day))
        if found is None:
            found = f"AWS4{secret}".encode()
            for part in (day, self._region, SERVICE, "aws4_request"):
                found = _mac(found, part)
            self._keys = {(secret, day): found}
        return found


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
