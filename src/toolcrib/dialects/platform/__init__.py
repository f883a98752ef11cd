"""The format of bundles and their tools: documents that clients send, that the store keeps, and that clients read.

A tool names a function of the host program (`type: go`) or the requests that it makes (`type: http`). What clients send is
checked as a whole; what lies in the store may have comments and keys that nobody knows, and both survive being read.
"""

from __future__ import annotations

from toolcrib.dialects.platform.bundles import read_bundle, read_stored_bundle
from toolcrib.dialects.platform.tools import Reading, read_stored_tool, read_tool
from toolcrib.dialects.platform.versions import SCHEMA_VERSION, is_newer
from toolcrib.dialects.platform.wire import bundle_to_wire, found_to_wire, tool_to_wire
from toolcrib.dialects.platform.writing import write_bundle, write_tool
from toolcrib.pure.jsonc import read_jsonc

__all__ = [
    "SCHEMA_VERSION",
    "Reading",
    "bundle_to_wire",
    "found_to_wire",
    "is_newer",
    "read_bundle",
    "read_jsonc",
    "read_stored_bundle",
    "read_stored_tool",
    "read_tool",
    "tool_to_wire",
    "write_bundle",
    "write_tool",
]
