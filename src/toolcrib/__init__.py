"""Toolcrib: write a tool down once; any agent finds it and calls it under guard."""

from __future__ import annotations

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # `python -m toolcrib` put the current folder first, which may be anybody's.
    del sys.path[0]

from toolcrib.lib import load

# Type checkers take the name for true. To import it from `typing` would be most of the time that `import toolcrib` takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolcrib.core.rules import AuthRule, RuleEngine
    from toolcrib.crib import Crib
    from toolcrib.features.functions.decorators import registered, tool
    from toolcrib.features.functions.definition import tool_of
    from toolcrib.features.publications.definitions import PromptArgument, prompt, resource
    from toolcrib.features.safety_rules.operator_patterns import SafetyRule
    from toolcrib.lib import __version__ as __version__
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.call import Call, Context
    from toolcrib.model.errors import Cure, Kind, Reader, SettingsError, ToolError
    from toolcrib.model.events import Chunk, LogMessage, Progress
    from toolcrib.model.protocols import Rule
    from toolcrib.model.result import ALLOW, Intent, Result, Verdict, confirm, deny
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Cost, Limits, RetryPolicy, Tool
    from toolcrib.toolkit.client_protocol import AnyCrib

__all__ = [
    "ALLOW",
    "AnyCrib",
    "AuthRule",
    "Bundle",
    "Call",
    "Chunk",
    "Context",
    "Cost",
    "Crib",
    "Cure",
    "Intent",
    "Kind",
    "Limits",
    "LogMessage",
    "Progress",
    "PromptArgument",
    "Reader",
    "Result",
    "RetryPolicy",
    "Rule",
    "RuleEngine",
    "SafetyRule",
    "Session",
    "SettingsError",
    "Tool",
    "ToolError",
    "Verdict",
    "confirm",
    "deny",
    "prompt",
    "registered",
    "resource",
    "tool",
    "tool_of",
]

# Where each public name lives; it is imported when it is first asked for, so that `import toolcrib` stays quick.
_HOMES = {
    "__version__": "toolcrib.lib",
    "ALLOW": "toolcrib.model.result",
    "AnyCrib": "toolcrib.toolkit.client_protocol",
    "AuthRule": "toolcrib.core.rules",
    "Bundle": "toolcrib.model.bundle",
    "Call": "toolcrib.model.call",
    "Chunk": "toolcrib.model.events",
    "Context": "toolcrib.model.call",
    "Cost": "toolcrib.model.tool",
    "Crib": "toolcrib.crib",
    "Cure": "toolcrib.model.errors",
    "Intent": "toolcrib.model.result",
    "Kind": "toolcrib.model.errors",
    "Limits": "toolcrib.model.tool",
    "LogMessage": "toolcrib.model.events",
    "Progress": "toolcrib.model.events",
    "PromptArgument": "toolcrib.features.publications.definitions",
    "Reader": "toolcrib.model.errors",
    "Result": "toolcrib.model.result",
    "RetryPolicy": "toolcrib.model.tool",
    "Rule": "toolcrib.model.protocols",
    "RuleEngine": "toolcrib.core.rules",
    "SafetyRule": "toolcrib.features.safety_rules.operator_patterns",
    "Session": "toolcrib.model.session",
    "SettingsError": "toolcrib.model.errors",
    "Tool": "toolcrib.model.tool",
    "ToolError": "toolcrib.model.errors",
    "Verdict": "toolcrib.model.result",
    "confirm": "toolcrib.model.result",
    "deny": "toolcrib.model.result",
    "prompt": "toolcrib.features.publications.definitions",
    "registered": "toolcrib.features.functions.decorators",
    "resource": "toolcrib.features.publications.definitions",
    "tool": "toolcrib.features.functions.decorators",
    "tool_of": "toolcrib.features.functions.definition",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    value = load(f"{_HOMES[name]}:{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
