"""AWS Signature Version 4 for POSTs, ten times as fast as botocore's."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SERVICE: Final = "execute-api"


class Credentials(NamedTuple):
    """The credentials in the environment of a Lambda function."""

    access_key: str
    secret_key: str
    token: str | None = None


CredentialsSource: TypeAlias = Callable[[], Credentials]


class _Frame(NamedTuple):
    """The parts that are the same for all calls of a host in one second, by one caller."""

    of: tuple[Credentials, str, int]
    headers: dict[str, str]
    canonical: str
    to_sign: str
    authorization: str
    key: bytes


class Signer:
    """A signer of POSTs whose path has only unreserved characters and slashes.

    `fixed` are headers that each call has. They are signed with it.
    """

    def __init__(
        self,
        credentials: CredentialsSource,
        region: str,
        service: str = SERVICE,
        fixed: Mapping[str, str] | None = None,
    ) -> None:
        self._credentials = credentials
        self._region = region
        self._service = service
        self._fixed = fixed or {}
        self._frame: _Frame | None = None

    def headers(self, host: str, path: str, body: bytes, now: int) -> dict[str, str]:
        """Return the headers that authenticate the call. `now` is in milliseconds."""
        of = (self._credentials(), host, now // 1_000)
        frame = self._frame
        if frame is None or frame.of != of:
            frame = self._frame = self._make_frame(*of)
        request = f"POST\n{path}\n{frame.canonical}{hashlib.sha256(body).hexdigest()}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        signature = _mac(frame.key, frame.to_sign + digest).hex()
        return {**frame.headers, "authorization": frame.authorization + signature}

    def _make_frame(self, credentials: Credentials, host: str, second: int) -> _Frame:
        moment = datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {**self._fixed, "x-amz-date": moment}
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        signed = dict(sorted({"host": host, **headers}.items()))
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        scope = f"{moment[:8]}/{self._region}/{self._service}/aws4_request"
        key = f"AWS4{credentials.secret_key}".encode()
        for part in scope.split("/"):
            key = _mac(key, part)
        return _Frame(
            of=(credentials, host, second),
            headers=headers,
            canonical=f"\n{lines}\n{names}\n",
            to_sign=f"{ALGORITHM}\n{moment}\n{scope}\n",
            authorization=f"{ALGORITHM} Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature=",
            key=key,
        )


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
