"""The one way to the outside: strict URLs, checked addresses, redirects of our own, bounded bodies."""

from toolcrib.ground.egress.client import Egress
from toolcrib.ground.egress.hosts import HostList, HostPattern, parse_hosts
from toolcrib.ground.egress.messages import Request, Response
from toolcrib.pure.url import Url, parse_url

__all__ = ["Egress", "HostList", "HostPattern", "Request", "Response", "Url", "parse_hosts", "parse_url"]
