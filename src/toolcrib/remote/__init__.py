"""A crib behind a URL, used like one of this machine."""

from toolcrib.remote.connection import TOKEN_VARIABLE
from toolcrib.remote.crib import RemoteCrib

__all__ = ["TOKEN_VARIABLE", "RemoteCrib"]
