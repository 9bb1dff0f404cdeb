import ipaddress

import pytest

from services.media.fetching.addresses import is_public
from services.media.fetching.connecting import is_allowed
from tests.grid import each_row

PRIVATE = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "2606:4700::1%1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700::1111",
    "64:ff9b::8.8.8.8",
]


@each_row("text", PRIVATE)
def test_special_addresses_are_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@each_row("text", PUBLIC)
def test_other_addresses_are_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


def test_no_address_of_python_s_own_table_is_public() -> None:
    # Theirs is older and knows less; what it knows must be known here.
    for number in range(0, 1 << 32, 65_521):
        address = ipaddress.IPv4Address(number)
        assert not is_public(address) or address.is_global, address


def test_an_address_of_this_machine_is_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ipaddress.ip_address("127.0.0.1")
    monkeypatch.setattr("services.media.fetching.connecting.is_public", lambda _: True)
    assert not is_allowed(own)
    assert is_allowed(ipaddress.ip_address("192.0.2.1"))
