"""Outgoing connections: strict URLs, checked addresses, own redirects, bounded bodies."""

from toolcrib.infra.egress.client import Egress
from toolcrib.infra.egress.messages import Request, Response
from toolcrib.lib.http_syntax import HostList, HostPattern, Url, parse_hosts, parse_url

__all__ = ["Egress", "HostList", "HostPattern", "Request", "Response", "Url", "parse_hosts", "parse_url"]
