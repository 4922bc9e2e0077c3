"""Where a webhook may connect to: public addresses of hosts that were allowed, and no others."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

from duetick.actions.messages import TargetFailed
from duetick.core.timing import ended_within

Address: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]

_NAT64: Final = IPv6Network("64:ff9b::/96")


def resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of a name."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as problem:
        raise TargetFailed(f"The name {host} has no address: {problem}.") from problem
    return [str(each[4][0]) for each in found]


def resolve_within(seconds: float, ask: Resolve, host: str, port: int) -> Sequence[str]:
    """The addresses, or TargetFailed after that many seconds: the system's resolver has patience
    of its own, and what it is asked cannot be taken back.
    """
    found: list[str] = []
    if not ended_within(seconds, lambda: found.extend(ask(host, port))):
        raise TargetFailed(f"{host}: its name was not resolved in time.")
    return found


def is_public(text: str) -> bool:
    """Whether an address is out in the internet: not private, link-local, loopback, a metadata
    service's, nor a wrapping of one of those.
    """
    address = _unwrapped(ip_address(text.partition("%")[0]))
    if isinstance(address, IPv6Address) and address.is_site_local:
        return False  # no longer private by any standard, and still somebody's own
    return address.is_global and not address.is_multicast and not address.is_reserved


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def is_allowed(host: str, allowed: Sequence[str]) -> bool:
    """Whether the host is in the list; `*.example.org` stands for every name below it."""
    host = host.lower().rstrip(".")
    return any(
        host == entry or (entry.startswith("*.") and host.endswith(entry[1:]) and host != entry[2:])
        for entry in (each.lower() for each in allowed)
    )
