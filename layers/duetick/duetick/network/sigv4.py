"""AWS Signature Version 4 for POSTs, ten times as fast as botocore's."""

import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

ALGORITHM: Final = "AWS4-HMAC-SHA256"
GATEWAY: Final = "execute-api"
"""The name under which calls of API Gateway are signed."""


class Credentials(NamedTuple):
    """The credentials in the environment of a Lambda function."""

    access_key: str
    secret_key: str
    token: str | None = None


CredentialsSource: TypeAlias = Callable[[], Credentials]

SignedFields: TypeAlias = tuple[tuple[str, str], ...]
"""Headers: each with its name in lower case."""


class _Frame(NamedTuple):
    """The parts that are the same for all calls of a host in one second, by one caller, with the
    same fields.
    """

    of: tuple[Credentials, str, int]
    headers: dict[str, str]
    canonical: str
    to_sign: str
    authorization: str
    key: bytes


class Signer:
    """A signer of POSTs whose path has only unreserved characters and slashes."""

    def __init__(self, credentials: CredentialsSource, region: str, service: str = GATEWAY) -> None:
        self._credentials = credentials
        self._region = region
        self._service = service
        self._frames: dict[SignedFields, _Frame] = {}

    def headers(
        self, host: str, path: str, body: bytes, now: int, fields: SignedFields = ()
    ) -> dict[str, str]:
        """Return the headers that authenticate the call, with the `fields`, which are signed too.

        `now` is in milliseconds. There are few different fields: the text made of each is kept.
        """
        of = (self._credentials(), host, now // 1_000)
        frame = self._frames.get(fields)
        if frame is None or frame.of != of:
            frame = self._frames[fields] = self._make_frame(*of, fields)
        request = f"POST\n{path}\n{frame.canonical}{hashlib.sha256(body).hexdigest()}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        signature = _mac(frame.key, frame.to_sign + digest).hex()
        return {**frame.headers, "authorization": frame.authorization + signature}

    def _make_frame(
        self, credentials: Credentials, host: str, second: int, fields: SignedFields
    ) -> _Frame:
        moment = datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {**dict(fields), "x-amz-date": moment}
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
