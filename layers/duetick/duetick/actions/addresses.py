"""The addresses that a webhook may connect to: public ones, of allowed hosts."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

from duetick.actions.messages import TargetFailed
from duetick.core.timeouts import run_in_thread

IpAddress: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]

_NAT64: Final = IPv6Network("64:ff9b::/96")
_UNICAST: Final = IPv6Network("2000::/3")
"""The block from which IANA assigns addresses to hosts."""
_SPECIAL: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
            "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
            "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
            "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
_SPECIAL_6: Final = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))
)
"""IANA's blocks for special purposes, and multicast. Even a block that IANA calls reachable is
here: it is an anycast service or an identifier, whose nearest instance may be in your own network.
"""


def resolve(host: str, port: int) -> Sequence[str]:
    """Return all addresses of a name."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as problem:
        raise TargetFailed(f"The name {host} has no address: {problem}.") from problem
    return [str(each[4][0]) for each in found]


def resolve_within(seconds: float, ask: Resolve, host: str, port: int) -> Sequence[str]:
    """Return all addresses of a name. Raise TargetFailed if that takes too many seconds.

    The system's resolver has its own timeout, and a lookup cannot be cancelled.
    """
    found: list[str] = []
    if not run_in_thread(seconds, lambda: found.extend(ask(host, port))):
        raise TargetFailed(f"{host}: its name was not resolved in time.")
    return found


def is_public(text: str) -> bool:
    """Return True if an address is on the public internet. A private, link-local, loopback or
    metadata address is not, nor is an IPv6 address that wraps one.
    """
    address = _unwrap(ip_address(text.partition("%")[0]))
    if isinstance(address, IPv6Address):
        return address in _UNICAST and not any(address in block for block in _SPECIAL_6)
    return not any(address in block for block in _SPECIAL)


def _unwrap(address: IpAddress) -> IpAddress:
    """Return the IPv4 address that an IPv6 address wraps, or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def is_allowed(host: str, allowed: Sequence[str]) -> bool:
    """Return True if the host is in the list. `*.example.org` allows every name below it."""
    host = host.lower().rstrip(".")
    return any(
        host == entry or (entry.startswith("*.") and host.endswith(entry[1:]) and host != entry[2:])
        for entry in (each.lower() for each in allowed)
    )
