"""The addresses of webhooks: the internet, and nothing that is one's own."""

import pytest
from duetick.actions.addresses import is_allowed, is_public, resolve
from duetick.actions.messages import TargetFailed

INWARD = [
    "127.0.0.1", "127.8.8.8", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1",
    "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
    "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "::169.254.169.254", "fec0::1",
    "2002:7f00:1::", "2002:a9fe:a9fe::", "2001:db8::1",
    "3fff::1", "3fff:fff:ffff::1", "2001:20::1", "2001:2f:ffff::1", "2001:30::1", "2001:10::1",
    "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:1::1", "2001:0:7f00:1::80ff:fffe",
    "192.88.99.1", "192.88.99.255", "2002:c058:6301::", "192.0.0.9", "192.0.0.10", "192.0.2.1",
    "192.31.196.1", "192.52.193.1", "192.175.48.1", "198.51.100.1", "203.0.113.1",
    "2620:4f:8000::1", "100::1", "100:0:0:1::1", "5f00::1", "4000::1", "::2", "fe00::1",
]  # fmt: skip
OUTWARD = [
    "93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101",
    "192.88.98.1", "192.88.100.1", "3ffe::1", "3fff:1000::1", "2001:200::1", "192.0.1.1",
    "2002:101:101::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INWARD)
def test_an_address_of_ones_own_network_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTWARD)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["a..example.org", "x" * 64 + ".example.org", "a\0.example.org"])
def test_a_name_that_cannot_be_leads_nowhere(host: str) -> None:
    with pytest.raises(TargetFailed, match="has no address"):
        resolve(host, 443)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("hooks.example.org", True),
        ("HOOKS.example.org.", True),
        ("a.example.net", True),
        ("a.b.example.net", True),
        ("example.net", False),
        ("badexample.net", False),
        ("hooks.example.org.evil.example", False),
        ("evil.example", False),
        ("", False),
    ],
)
def test_a_host_is_allowed_by_name_or_below_a_name(host: str, allowed: bool) -> None:
    assert is_allowed(host, ("hooks.example.org", "*.example.net")) is allowed
