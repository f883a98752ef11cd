"""What each version of the protocol supports: one table of all differences between the wires, as versions are called here."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.messages import Code, ProtocolError
from toolcrib.lib import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.interfaces.mcp.messages import Params

NEWEST = "2026-07-28"
NEWEST_WITH_SESSIONS = "2025-11-25"
# The keys of `_meta` that the stateless wire uses.
META = "io.modelcontextprotocol/"
VERSION_KEY = f"{META}protocolVersion"
CAPABILITIES_KEY = f"{META}clientCapabilities"
LOG_LEVEL_KEY = f"{META}logLevel"
SERVER_KEY = f"{META}serverInfo"
SUBSCRIPTION_KEY = f"{META}subscriptionId"

COMMON_METHODS = frozenset(
    (
        *("tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"),
        *("prompts/list", "prompts/get", "completion/complete"),
    )
)
SESSION_METHODS = COMMON_METHODS | {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
ONLY_STATELESS = frozenset({"server/discover", "subscriptions/listen"})
STATELESS_METHODS = COMMON_METHODS | ONLY_STATELESS


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """One version. `is_stateless` tells the two ways apart: each request for itself, or a session that `initialize` opens.

    The other fields say what else it knows: results with structure (of any type, or only objects), audio, links to resources,
    questions to the user, and streams that a client may resume.
    """

    version: str
    is_stateless: bool = False
    has_structure: bool = True
    has_any_structure: bool = False
    has_audio: bool = True
    has_links: bool = True
    has_elicitation: bool = True
    has_resumption: bool = False
    resource_not_found: Code = Code.RESOURCE_NOT_FOUND

    @property
    def methods(self) -> frozenset[str]:
        """The methods of its requests."""
        return STATELESS_METHODS if self.is_stateless else SESSION_METHODS


WIRES: Mapping[str, Wire] = MappingProxyType(
    {
        wire.version: wire
        for wire in (
            Wire(
                version=NEWEST,
                is_stateless=True,
                has_any_structure=True,
                resource_not_found=Code.INVALID_PARAMS,
            ),
            Wire(version=NEWEST_WITH_SESSIONS, has_resumption=True),
            Wire(version="2025-06-18"),
            Wire(version="2025-03-26", has_structure=False, has_links=False, has_elicitation=False),
            Wire(version="2024-11-05", has_structure=False, has_links=False, has_elicitation=False, has_audio=False),
        )
    }
)
STATELESS = WIRES[NEWEST]
SUPPORTED = tuple(WIRES)
# The version of a client that sends no version header, as the protocol defines it.
ASSUMED = WIRES["2025-03-26"]

SERVER_INFO: Mapping[str, object] = MappingProxyType({"name": "toolcrib", "title": "Toolcrib", "version": __version__})
CAPABILITIES: Mapping[str, object] = MappingProxyType(
    {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    }
)
INSTRUCTIONS = (
    "Every tool here checks its arguments and says in its error how to put a wrong call right. "
    "Where search_tools is listed, there are more tools than are listed: find one with search_tools, read its parameters "
    "with describe_tool, and call it with call_tool. A result that is too large is given as a link to a resource."
)
# How long a client may cache a list; listeners are notified of changes.
FRESH_MS = 5_000


def initialize(params: Params) -> tuple[Wire, Params, Params]:
    """Open a session: the wire that both speak, the capabilities of the client, and the answer."""
    version, capabilities, client = (params.get(key) for key in ("protocolVersion", "capabilities", "clientInfo"))
    if not isinstance(version, str):
        raise ProtocolError(Code.INVALID_PARAMS, "protocolVersion: must be a text such as '2025-11-25'")
    if not isinstance(capabilities, dict):
        raise ProtocolError(Code.INVALID_PARAMS, "capabilities: must be an object")
    if not isinstance(client, dict) or not all(isinstance(client.get(key), str) for key in ("name", "version")):
        raise ProtocolError(Code.INVALID_PARAMS, "clientInfo: must be an object with a name and a version")
    wire = WIRES.get(version)
    if wire is None or wire.is_stateless:
        wire = WIRES[NEWEST_WITH_SESSIONS]
    result: Params = {
        "protocolVersion": wire.version,
        "capabilities": dict(CAPABILITIES),
        "serverInfo": dict(SERVER_INFO),
        "instructions": INSTRUCTIONS,
    }
    return wire, capabilities, result


def discover() -> Params:
    """What the stateless wire tells a client in place of a session."""
    return {
        "supportedVersions": list(SUPPORTED),
        "capabilities": dict(CAPABILITIES),
        "instructions": INSTRUCTIONS,
        "ttlMs": FRESH_MS,
        "cacheScope": "private",
    }


def complete(result: Params) -> Params:
    """A result as the stateless wire has it: with its type, and with the name of the server."""
    meta = result.get("_meta")
    return {
        **result,
        "resultType": result.get("resultType", "complete"),
        "_meta": {**(meta if isinstance(meta, dict) else {}), SERVER_KEY: dict(SERVER_INFO)},
    }


def check_stateless(params: Params) -> Params:
    """The capabilities of the client that a stateless request declares; raises for one that lacks what each must have."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        message = f"params._meta: must be an object with {VERSION_KEY!r} and {CAPABILITIES_KEY!r}"
        raise ProtocolError(Code.INVALID_PARAMS, message)
    version, capabilities = meta.get(VERSION_KEY), meta.get(CAPABILITIES_KEY)
    if not isinstance(version, str):
        raise ProtocolError(Code.INVALID_PARAMS, f"params._meta: {VERSION_KEY!r} must be a text")
    if not isinstance(capabilities, dict):
        raise ProtocolError(Code.INVALID_PARAMS, f"params._meta: {CAPABILITIES_KEY!r} must be an object")
    wire = WIRES.get(version)
    if wire is None or not wire.is_stateless:
        # The supported versions are those that may stand in `_meta`; older ones are opened with `initialize`.
        data = {"supported": [NEWEST], "requested": version[:100]}
        raise ProtocolError(Code.UNSUPPORTED_VERSION, "the version of the protocol is not supported", data=data)
    return capabilities


def is_stateless_request(params: Params) -> bool:
    """Whether a request carries what only the stateless wire has."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta
