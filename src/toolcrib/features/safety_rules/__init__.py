"""Rules that judge calls: dangerous commands, sensitive files, patterns of the operator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.core.rules import TextRule
from toolcrib.model.tool import Function, Script

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Rule
    from toolcrib.model.result import Verdict
    from toolcrib.model.tool import Tool

DEFAULT_RULES = ("dangerous_commands", "sensitive_files")
# Settings that give tools secrets, or call their results private.
PRIVATE_BY_SETTINGS = frozenset({"access.variables", "ecosystems.valves", "safety_rules.private"})


def register(plugins: Plugins) -> None:
    """Add the rules; each is created on first use, because its tables and patterns take time to load."""
    plugins.add_resource(
        "dangerous_commands",
        "toolcrib.features.safety_rules.dangerous_commands:DangerousCommands",
        given=lambda resources: {"allowed": _setting(resources, "commands")},
    )
    plugins.add_resource(
        "sensitive_files",
        "toolcrib.features.safety_rules.sensitive_files:SensitiveFiles",
        given=lambda resources: {
            "workspace": resources.settings.workspace,
            "opened": resources.settings["workspace"].open,
        },
    )
    plugins.add_resource("text_screen", "toolcrib.features.safety_rules.roles:make_text_screen")
    plugins.add_resource("operator_patterns", "toolcrib.features.safety_rules.operator_patterns:rules_of_settings")
    plugins.add_resource(
        "data_flow",
        "toolcrib.features.safety_rules.data_flow:DataFlow",
        given=lambda resources: {
            "resources": resources,
            "private": _setting(resources, "private"),
            "workspace": resources.settings.workspace,
        },
    )
    plugins.add_rules("safety_rules", _make_rules)
    plugins.add_settings("safety_rules", "toolcrib.features.safety_rules.settings:SafetyRulesSettings")
    plugins.add_settings("rules", "toolcrib.features.safety_rules.settings:RulesSettings")


def _make_rules(resources: Resources) -> list[Rule]:
    off = _setting(resources, "off")
    screen = partial(resources.get, "text_screen")
    rules: list[Rule] = [
        TextRule(name, partial(resources.get, name), screen) for name in DEFAULT_RULES if name not in off
    ]
    if _setting(resources, "data_flow") is not False:
        named = PRIVATE_BY_SETTINGS & resources.settings.places.keys()
        rules.append(_DataFlow(partial(resources.get, "data_flow"), names_tools=bool(named)))
    return [*rules, *(resources.get("operator_patterns") if "rules" in resources.settings.places else ())]


class _DataFlow:
    """The rule `data_flow`, made for the first tool that may send data out or have private data."""

    name = "data_flow"

    def __init__(self, make: Callable[[], Any], *, names_tools: bool) -> None:
        self._make = make
        self._names_tools = names_tools

    def concerns(self, tool: Tool) -> bool:
        """Whether the rule has anything to judge: not for code without capabilities that no setting names."""
        is_closed = isinstance(tool.run, Script | Function) and not tool.requires and not self._names_tools
        return not is_closed and bool(self._make().concerns(tool))

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Ask the rule."""
        verdict: Verdict = self._make()(tool, call)
        return verdict

    def notes(self, tool: Tool, call: Call) -> set[str]:
        """What the rule has a session remember."""
        return set(self._make().notes(tool, call))


def _setting(resources: Resources, name: str) -> Any:
    """A key of the settings table, which is only loaded if the operator wrote it; else None."""
    settings = resources.settings
    return getattr(settings["safety_rules"], name) if f"safety_rules.{name}" in settings.places else ()
