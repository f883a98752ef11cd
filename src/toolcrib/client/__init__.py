"""A crib behind a URL, used like one of this machine."""

from toolcrib.client.connection import TOKEN_VARIABLE
from toolcrib.client.remote_crib import RemoteCrib

__all__ = ["TOKEN_VARIABLE", "RemoteCrib"]
