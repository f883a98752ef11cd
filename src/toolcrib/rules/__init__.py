"""Each judges a call and says why.

Rules explain and ask; the walls are the jail and the sandbox. A rule reads what a call says, as a careful colleague
would: it catches accidents and plain attacks early, names the reason and the cure, and asks a person where it cannot
know. It does not stop somebody who is determined; nothing here may be taken for a reason to lower a wall.
"""

from __future__ import annotations

from toolcrib.rules.auth import AuthRule
from toolcrib.rules.dangerous import DangerousCommands
from toolcrib.rules.engine import RuleEngine, default_rules
from toolcrib.rules.paths import is_sensitive
from toolcrib.rules.safety import SafetyRule
from toolcrib.rules.sensitive import SensitiveFiles

__all__ = [
    "AuthRule",
    "DangerousCommands",
    "RuleEngine",
    "SafetyRule",
    "SensitiveFiles",
    "default_rules",
    "is_sensitive",
]
