"""The address of a Postgres, as libpq writes it. An option that cannot be honoured is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Literal, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from duetick.domain.errors import InvalidStoreUrl

Tls = Literal["off", "verify-ca", "verify-full"]

SYSTEM: Final = "system"
"""The root certificate that stands for the authorities that the machine trusts."""

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
    """The address of a database and its user. The constructor checks it."""

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
        """The file of a Unix socket; None if the address names a host."""
        return f"{self.host}/.s.PGSQL.{self.port}" if self.host.startswith("/") else None

    @property
    def place(self) -> str:
        """Host, port and database, for messages: no user and no password."""
        return f"{self.host}:{self.port}/{self.database}"


def read_address(url: str) -> Address:
    """Read a libpq URL. Options after the question mark override the parts before it."""
    options = _options(url)
    if not options["user"]:
        raise InvalidStoreUrl("The address names no user: postgresql://user@host/database.")
    return Address(
        user=options["user"],
        database=options["dbname"] or options["user"],
        host=options["host"],
        port=_number("port", options["port"], 65_535),
        password=options["password"] or None,
        tls=_tls(options),
        root_certificate=options["sslrootcert"],
        connect_timeout=_number("connect_timeout", options["connect_timeout"], 600),
        application_name=options["application_name"],
        region=options["region"] if options["iam"] == "true" else None,
        pool=_number("pool", options["pool"], 1_000),
    )


def _options(url: str) -> dict[str, str]:
    try:
        parts = urlsplit(url)
        if "@" in parts.path or parts.fragment:
            raise ValueError  # the password has a bare / or #, so the host is a part of it
        in_url = _options_in_url(parts)
        in_query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise InvalidStoreUrl(
            "The address cannot be read. Expected postgresql://user:password@host:5432/database; "
            "characters that mean something in an address are written with a percent sign."
        ) from None
    for name in in_query:
        if name not in _DEFAULTS:
            raise InvalidStoreUrl(f"{name!r} is not known; known are {', '.join(_DEFAULTS)}.")
    return _DEFAULTS | {name: value for name, value in in_url.items() if value} | in_query


def _options_in_url(parts: SplitResult) -> dict[str, str]:
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


def _tls(options: Mapping[str, str]) -> Tls:
    """Fail closed: on a network, only sslmode=disable leaves TLS out, and TLS always verifies."""
    mode, has_root = options["sslmode"], bool(options["sslrootcert"])
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
    if _is_local(options["host"]):
        return "off"
    raise InvalidStoreUrl(f"The host is on a network, and the address asks for no TLS. {_TLS_HELP}")


def _is_local(host: str) -> bool:
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
