"""The address of a Postgres, as libpq writes it. Nothing that cannot be kept is passed over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Literal, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from duetick.domain.errors import InvalidStoreUrl

Tls = Literal["off", "verify-ca", "verify-full"]

SYSTEM: Final = "system"
"""As a root certificate: the authorities that the machine trusts."""

_DEFAULTS: Final = {
    "user": "",
    "password": "",
    "host": "localhost",
    "port": "5432",
    "dbname": "",
    "sslmode": "",
    "sslrootcert": "",
    "connect_timeout": "5",
    "application_name": "duetick",
    "iam": "",
    "region": "",
    "pool": "8",
}

_TLS_HELP: Final = (
    "Add sslmode=verify-full and sslrootcert=/path/to/ca.pem (or sslrootcert=system for the "
    "authorities that the machine trusts); sslmode=disable says that the network may read along."
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is, and who asks. Checked when it is made."""

    user: str
    database: str
    host: str = "localhost"
    port: int = 5432
    password: str | None = field(default=None, repr=False)
    tls: Tls = "off"
    root_certificate: str = ""
    connect_timeout: int = 5
    application_name: str = "duetick"
    region: str | None = None
    pool: int = 8

    def __post_init__(self) -> None:
        if self.tls != "off" and not self.root_certificate:
            raise InvalidStoreUrl(f"TLS has no authority to check the server by. {_TLS_HELP}")
        if self.region is not None and (self.tls == "off" or not self.region):
            raise InvalidStoreUrl(
                "iam=true needs a region=…, and TLS: a token must not be readable on its way. "
                f"{_TLS_HELP}"
            )

    @property
    def socket_file(self) -> str | None:
        """The file of a Unix socket; None where the host is one."""
        return f"{self.host}/.s.PGSQL.{self.port}" if self.host.startswith("/") else None

    @property
    def place(self) -> str:
        """Host, port and database, for messages: no user and no password."""
        return f"{self.host}:{self.port}/{self.database}"


def read_address(url: str) -> Address:
    """Read a libpq URL; what it says after the question mark goes before what stands ahead."""
    given = _given(url)
    if not given["user"]:
        raise InvalidStoreUrl("The address names no user: postgresql://user@host/database.")
    return Address(
        user=given["user"],
        database=given["dbname"] or given["user"],
        host=given["host"],
        port=_number("port", given["port"], 65_535),
        password=given["password"] or None,
        tls=_tls(given),
        root_certificate=given["sslrootcert"],
        connect_timeout=_number("connect_timeout", given["connect_timeout"], 600),
        application_name=given["application_name"],
        region=given["region"] if given["iam"] == "true" else None,
        pool=_number("pool", given["pool"], 1_000),
    )


def _given(url: str) -> dict[str, str]:
    try:
        parts = urlsplit(url)
        ahead = _ahead(parts)
        after = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise InvalidStoreUrl(
            "The address cannot be read. Expected postgresql://user:password@host:5432/database; "
            "characters that mean something in an address are written with a percent sign."
        ) from None
    for name in after:
        if name not in _DEFAULTS:
            raise InvalidStoreUrl(f"{name!r} is not known; known are {', '.join(_DEFAULTS)}.")
    return _DEFAULTS | {name: value for name, value in ahead.items() if value} | after


def _ahead(parts: SplitResult) -> dict[str, str]:
    return {
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "host": unquote(parts.hostname or ""),
        "port": str(parts.port or ""),
        "dbname": unquote(parts.path.removeprefix("/")),
    }


def _number(name: str, text: str, most: int) -> int:
    if not text.isdecimal() or not 0 < int(text) <= most:
        raise InvalidStoreUrl(f"{name} is a whole number from 1 to {most}, not {text[:20]!r}.")
    return int(text)


def _tls(given: Mapping[str, str]) -> Tls:
    """Fails closed: what libpq would try without TLS, or unverified, must be asked for."""
    mode, has_root = given["sslmode"], bool(given["sslrootcert"])
    if mode == "disable":
        return "off"
    if mode in ("verify-ca", "verify-full"):
        return cast("Tls", mode)
    if mode == "require":
        return "verify-ca"
    if mode not in ("", "allow", "prefer"):
        raise InvalidStoreUrl(f"sslmode={mode[:20]!r} is not known. {_TLS_HELP}")
    if has_root:
        return "verify-full"
    if _is_local(given["host"]):
        return "off"
    raise InvalidStoreUrl(f"The host is on a network, and the address asks for no TLS. {_TLS_HELP}")


def _is_local(host: str) -> bool:
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
