import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, SettingsError, ToolError
from toolcrib.infra.egress.dialler import AddressPolicy, block_of, is_own_address, parse_private

SPECIAL = [
    ("0.0.0.0", "this host"),
    ("0.1.2.3", "this host"),
    ("10.0.0.1", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.1", "shared by carriers"),
    ("100.100.100.200", "shared by carriers"),
    ("100.127.255.255", "shared by carriers"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("168.63.129.16", "cloud platform"),
    ("169.254.169.254", "link-local and cloud metadata"),
    ("169.254.170.2", "link-local and cloud metadata"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.8", "protocol assignments"),
    ("192.0.0.192", "protocol assignments"),
    ("192.0.2.1", "documentation"),
    ("192.31.196.1", "AS112"),
    ("192.52.193.1", "multicast tunnels"),
    ("192.88.99.1", "6to4 relays"),
    ("192.168.1.1", "private"),
    ("192.175.48.1", "AS112"),
    ("198.18.0.1", "benchmarks"),
    ("198.19.255.255", "benchmarks"),
    ("198.51.100.7", "documentation"),
    ("203.0.113.9", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved and broadcast"),
    ("255.255.255.255", "reserved and broadcast"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::7f00:1", "IPv4-compatible"),
    ("::8.8.8.8", "IPv4-compatible"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:10.0.0.1", "private"),
    ("::ffff:169.254.169.254", "link-local and cloud metadata"),
    ("::ffff:0:127.0.0.1", "IPv4-translated"),
    ("64:ff9b::7f00:1", "NAT64"),
    ("64:ff9b::8.8.8.8", "NAT64"),
    ("64:ff9b:1::1", "NAT64"),
    ("100::1", "discarded"),
    ("2001::1", "protocol assignments and Teredo"),
    ("2001:0:7f00:1::", "protocol assignments and Teredo"),
    ("2001:10::1", "protocol assignments and Teredo"),
    ("2001:1ff:ffff::1", "protocol assignments and Teredo"),
    ("2001:db8::1", "documentation"),
    ("2002:7f00:1::", "6to4"),
    ("2002:808:808::1", "6to4"),
    ("2620:4f:8000::1", "AS112"),
    ("3fff::1", "documentation"),
    ("3fff:fff:ffff::1", "documentation"),
    ("5f00::1", "not assigned for public use"),
    ("4000::1", "not assigned for public use"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "private"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("febf::1", "link-local"),
    ("fec0::1", "site-local"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast"),
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "172.15.255.255",
    "172.32.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2001:db7:ffff::1",
    "2001:db9::1",
    "2003::1",
    "2606:4700:4700::1111",
    "3fff:1000::1",
]


@pytest.mark.parametrize(("text", "purpose"), SPECIAL)
def test_a_special_address_is_known_by_its_block(text, purpose):
    block = block_of(ip_address(text))
    assert block is not None
    assert block.purpose == purpose


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_lies_in_no_block(text):
    assert block_of(ip_address(text)) is None


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_judged_as_the_address_inside(address):
    assert block_of(IPv6Address(f"::ffff:{address}")) == block_of(address)


@given(st.ip_addresses(v=6))
def test_only_global_unicast_and_mapped_addresses_can_be_public(address):
    if block_of(address) is None:
        assert int(address) >> 125 == 1 or address.ipv4_mapped is not None


def test_a_refusal_names_host_address_block_and_cure():
    with pytest.raises(ToolError) as caught:
        AddressPolicy().check("intranet.example", IPv4Address("10.1.2.3"), 8080)
    cure = 'an operator who trusts it writes egress.private = ["10.1.2.3:8080"]'
    assert caught.value.kind is Kind.HOST_NOT_ALLOWED
    assert caught.value.message == f"intranet.example: 10.1.2.3 lies in 10.0.0.0/8 (private); {cure}"
    assert caught.value.details == {
        "host": "intranet.example",
        "port": 8080,
        "address": "10.1.2.3",
        "block": "10.0.0.0/8 (private)",
        "cure": cure,
    }


def test_a_public_address_of_this_machine_counts_as_private():
    own = IPv4Address("93.184.216.34")
    policy = AddressPolicy(is_own=lambda address: address == own, private=frozenset({(own, 8443)}))
    with pytest.raises(
        ToolError, match=r"me\.example: 93\.184\.216\.34 lies in 93\.184\.216\.34/32 \(this machine\); "
    ):
        policy.check("me.example", own, 443)
    policy.check("me.example", own, 8443)
    policy.check("example.com", IPv4Address("93.184.216.35"), 443)


def test_the_kernel_knows_which_addresses_are_its_own():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_route:
        any_route.connect(("127.0.0.1", 9))
        assert is_own_address(ip_address(any_route.getsockname()[0]))
    assert is_own_address(IPv6Address("::ffff:127.0.0.1"))
    for other in ("93.184.216.34", "2606:4700::1111"):
        assert not is_own_address(ip_address(other))


def test_the_cure_for_ipv6_is_written_in_brackets():
    with pytest.raises(ToolError, match=r'egress\.private = \["\[::1\]:8080"\]'):
        AddressPolicy().check("::1", IPv6Address("::1"), 8080)


def test_a_listed_endpoint_opens_that_address_and_port_alone():
    policy = AddressPolicy(private=parse_private(["127.0.0.1:8080", "[::1]:8080"]))
    policy.check("localhost", IPv4Address("127.0.0.1"), 8080)
    policy.check("localhost", IPv6Address("::1"), 8080)
    for address, port in [("127.0.0.1", 8081), ("127.0.0.2", 8080), ("::2", 8080), ("::ffff:127.0.0.1", 8080)]:
        with pytest.raises(ToolError, match="lies in"):
            policy.check("localhost", ip_address(address), port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0",
        "localhost:80",
        "::1:80",
        "[::1]",
        "127.1:80",
        "10.0.0.0/8:80",
        "*:80",
    ],
)
def test_a_private_endpoint_that_is_not_exact_is_refused_with_its_cure(text):
    with pytest.raises(SettingsError, match=r'egress\.private: .* write "127\.0\.0\.1:8080"'):
        parse_private([text])
