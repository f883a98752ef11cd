"""subnet calculator for the network team"""
import ipaddress


def subnet(network: ipaddress.IPv4Network, host: ipaddress.IPv4Address | None = None) -> dict:
    """Facts about a network, and whether a host is in it."""
    facts = {
        "first": network.network_address,
        "last": network.broadcast_address,
        "hosts": max(network.num_addresses - 2, 0),
    }
    if host is not None:
        facts["inside"] = host in network
    return facts
