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


@dataclass(frozen=True, slots=True)
class _Frame:
    """What is the same for all calls of a host in one second, by the same credentials."""

    of: tuple[Credentials, str, int]
    headers: dict[str, str]
    canonical: str
    to_sign: str
    authorization: str
    key: bytes


class Signer:
    """Signs POSTs whose path holds only unreserved characters and slashes."""

    def __init__(self, credentials: CredentialsSource, region: str) -> None:
        self._credentials = credentials
        self._region = region
        self._frame: _Frame | None = None

    def headers(self, host: str, path: str, body: bytes, now: int) -> dict[str, str]:
        """The headers that authenticate the call; `now` in milliseconds."""
        of = (self._credentials(), host, now // 1_000)
        frame = self._frame
        if frame is None or frame.of != of:
            frame = self._frame = self._framed(*of)
        request = f"POST\n{path}\n{frame.canonical}{hashlib.sha256(body).hexdigest()}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        signature = _mac(frame.key, frame.to_sign + digest).hex()
        return {**frame.headers, "authorization": frame.authorization + signature}

    def _framed(self, given: Credentials, host: str, second: int) -> _Frame:
        moment = datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {"x-amz-date": moment}
        if given.token:
            headers["x-amz-security-token"] = given.token
        signed = {"host": host, **headers}
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        scope = f"{moment[:8]}/{self._region}/{SERVICE}/aws4_request"
        key = f"AWS4{given.secret_key}".encode()
        for part in scope.split("/"):
            key = _mac(key, part)
        return _Frame(
            of=(given, host, second),
            headers=headers,
            canonical=f"\n{lines}\n{names}\n",
            to_sign=f"{ALGORITHM}\n{moment}\n{scope}\n",
            authorization=f"{ALGORITHM} Credential={given.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature=",
            key=key,
        )


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
