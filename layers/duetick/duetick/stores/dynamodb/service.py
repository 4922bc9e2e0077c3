"""Requests to DynamoDB: JSON over HTTP, signed, on connections that stay open.

botocore takes five times as much processor time for each, and a third of a cold start. This
module does not know the meaning of a request: the names of operations and fields are DynamoDB's.
"""

import json
import re
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

from duetick.domain.errors import InvalidStoreUrl
from duetick.network.exchange import BadAnswer, Connections, HttpAnswer, post
from duetick.network.sigv4 import CredentialsSource, SignedFields, Signer
from duetick.stores.dynamodb.clock import host_clock

Body: TypeAlias = Mapping[str, Any]
"""A request or an answer, as DynamoDB's documents describe it."""

TRIES: Final = 6
CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0
LONGEST_ANSWER: Final = 32 * 2**20
"""Twice what the largest answer may hold, as its text is longer than what it says."""

FIRST_WAIT: Final = 0.05
FIRST_WAIT_THROTTLED: Final = 0.5
LONGEST_WAIT: Final = 8.0

SKEWED_MS: Final = 240_000
"""A signature is taken if it is less than five minutes from the service's clock."""

THROTTLED: Final = frozenset(
    {
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionInProgressException",
    }
)
UNTIMELY: Final = frozenset(
    {
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)

_PORTS: Final = {"http": 80, "https": 443}
_VERSION: Final = "DynamoDB_20120810"
_DATE: Final = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"


class ServiceRefusal(Exception):
    """The service refused a request. `reasons` are those of the writes of a transaction."""

    def __init__(
        self,
        operation: str,
        code: str,
        message: str,
        reasons: Sequence[Body] = (),
        status: int = 400,
    ) -> None:
        super().__init__(f"{operation} was refused: {message} ({code})")
        self.operation = operation
        self.code = code
        self.reasons = reasons
        self.status = status


class ServiceSilent(Exception):
    """The service could not be reached, or did not answer."""


class Service(Protocol):
    """The way to DynamoDB."""

    @property
    def date(self) -> int | None:
        """The service's clock in milliseconds, as of its last answer; None if it is unknown."""

    def call(self, operation: str, request: Body) -> dict[str, Any]:
        """Send a request; return its answer. Raises ServiceRefusal or ServiceSilent.

        A request that is throttled or not answered is sent again, so it may be done twice.
        """

    def close(self) -> None:
        """Close the connections. A closed service may be used again."""


class Sender(Protocol):
    """The way of one request to the service and of its answer back."""

    def send(self, operation: str, body: bytes, now: int) -> HttpAnswer:
        """Send a request, dated `now`. Raises OSError or BadAnswer."""

    def close(self) -> None:
        """Close the connections."""


def _split_url(url: str) -> tuple[SplitResult, int]:
    """Return the parts of an address, and its port. Raise InvalidStoreUrl if it is none."""
    with suppress(ValueError):  # such as a port above 65535, or half of an IPv6 address
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        if port and parts.hostname:
            return parts, port
    raise InvalidStoreUrl(
        f"{url[:80]!r} is no address of DynamoDB, such as http://127.0.0.1:8000: look at the "
        "store's address and at AWS_ENDPOINT_URL."
    )


class SignedPosts:
    """`Sender` at a URL of the service, with the credentials of a caller."""

    def __init__(self, url: str, region: str, credentials: CredentialsSource) -> None:
        parts, port = _split_url(url)
        self._connections = Connections(parts.hostname or "", port, secure=parts.scheme == "https")
        self._host = parts.netloc
        self._path = parts.path or "/"
        self._signer = Signer(credentials, region, "dynamodb")

    def send(self, operation: str, body: bytes, now: int) -> HttpAnswer:
        """See `Sender`."""
        signed = self._signer.headers(self._host, self._path, body, now, _fields(operation))
        return self._connections.exchange(
            post(self._path, {"host": self._host, **signed}, body),
            time.monotonic() + ANSWER_SECONDS,
            connect_within=CONNECT_SECONDS,
            longest=LONGEST_ANSWER,
        )

    def close(self) -> None:
        """See `Sender`."""
        self._connections.close()


class JsonService:
    """`Service` over a sender. It repeats a request that was throttled or not answered."""

    def __init__(self, sender: Sender, clock: Callable[[], int] = host_clock) -> None:
        self.sender = sender
        self._clock = clock
        self._ahead = 0
        self._date = ""

    @property
    def date(self) -> int | None:
        """See `Service`."""
        return read_date(self._date)

    def call(self, operation: str, request: Body) -> dict[str, Any]:
        """See `Service`."""
        body, tried = encode(operation, request), 0
        while True:
            try:
                return self._try(operation, body)
            except (ServiceRefusal, ServiceSilent) as problem:
                tried += 1
                if tried == TRIES or not self._may_try_again(problem):
                    raise
                wait = _wait(problem, tried)
            time.sleep(wait)

    def close(self) -> None:
        """See `Service`."""
        self.sender.close()

    def _try(self, operation: str, body: bytes) -> dict[str, Any]:
        try:
            answer = self.sender.send(operation, body, self._clock() + self._ahead)
        except (OSError, BadAnswer) as error:
            raise ServiceSilent(f"{operation}: {type(error).__name__}: {error}") from error
        self._date = answer.date
        if answer.status != 200:
            raise read_refusal(operation, answer)
        found: dict[str, Any] = json.loads(answer.body)
        return found

    def _may_try_again(self, problem: ServiceRefusal | ServiceSilent) -> bool:
        if isinstance(problem, ServiceSilent):
            return True
        if problem.code in UNTIMELY:
            return self._set_clock()
        return problem.code in THROTTLED or problem.status >= 500

    def _set_clock(self) -> bool:
        """Sign by the service's clock if the host's is wrong. Return False if that is not it.

        A claim is then refused by the error that says so (`clock.Skew`).
        """
        known = self.date
        if known is None or abs(known - (self._clock() + self._ahead)) < SKEWED_MS:
            return False
        self._ahead = known - self._clock()
        return True


def _fields(operation: str) -> SignedFields:
    return (
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", f"{_VERSION}.{operation}"),
    )


def encode(operation: str, request: Body) -> bytes:
    """Return a request as it is sent."""
    try:
        return _ENCODER.encode(request).encode()
    except (TypeError, ValueError) as error:
        raise ServiceRefusal(operation, "SerializationException", str(error)) from error


def _binary(value: object) -> str:
    """Encode a binary attribute of an action's own writes: Duetick has none."""
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    raise TypeError(f"an item holds {type(value).__name__}, which no attribute can be")


_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), default=_binary)


def read_refusal(operation: str, answer: HttpAnswer) -> ServiceRefusal:
    """Return the refusal that an answer tells."""
    status = answer.status
    try:
        told = json.loads(answer.body)
        code = str(told["__type"]).rpartition("#")[2]
    except (ValueError, KeyError, TypeError):
        return ServiceRefusal(operation, f"HTTP {status}", "nothing more was said", (), status)
    message = str(told.get("message") or told.get("Message") or "")
    reasons = told.get("CancellationReasons") or ()
    return ServiceRefusal(operation, code, message, reasons, status)


def read_date(text: str) -> int | None:
    """Read the field `date` of an answer, in milliseconds; None if it is not one."""
    found = _DATE.match(text)
    if not found:
        return None
    day, month, *others = found.groups()
    year, hour, minute, second = map(int, others)
    place = _MONTHS.index(month) // 3 + 1
    moment = datetime(year, place, int(day), hour, minute, second, tzinfo=UTC)
    return int(moment.timestamp()) * 1_000


def _wait(problem: ServiceRefusal | ServiceSilent, tried: int) -> float:
    """Return the seconds before the next try: longer each time, and not in step with others."""
    is_refused = isinstance(problem, ServiceRefusal) and problem.code in THROTTLED
    first = FIRST_WAIT_THROTTLED if is_refused else FIRST_WAIT
    longest = min(first * 2**tried, LONGEST_WAIT)
    return secrets.randbelow(int(longest * 1_000)) / 1_000
