"""Read the fields that a script's metadata may have: capabilities, hosts, limits, cost, configuration and documentation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.features.scripts.metadata import warn_of_unknown_keys
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.lib.icons import ICONS, read_icons
from toolcrib.lib.names import is_capability
from toolcrib.lib.positions import SHOWN
from toolcrib.lib.yaml import name_type
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import (
    MAX_ATTEMPTS,
    MAX_CALLS_KEY,
    MAX_CALLS_PER_MINUTE,
    RETRY_KEYS,
    Backoff,
    Cost,
    Limits,
    RetryPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.features.scripts.metadata import MetadataReport
    from toolcrib.lib.positions import Steps


MAX_TIMEOUT_SECONDS = 7 * 24 * 3600
COST_NUMBERS = ("per_invocation", "per_minute", "estimated_duration")
EXAMPLE_KEYS = ("arguments", "action", "description", "output")
SWITCHES = ("deprecated", "experimental")
CAPABILITY_LISTS = frozenset({"capabilities", "permissions"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCall:
    """Arguments that the author showed, for the tool itself or for one of its actions."""

    arguments: dict[str, object]
    at: Steps
    action: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Documentation:
    """A link, texts to show, and example calls."""

    url: str = ""
    texts: tuple[str, ...] = ()
    examples: tuple[ShownCall, ...] = ()

    def to_text(self) -> str:
        """The link and the texts, as people read them."""
        link = [f"See {self.url}"] if self.url else []
        shown = ["Examples:\n" + "\n".join(f"- {text}" for text in self.texts)] if self.texts else []
        return "\n\n".join(link + shown)


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The optional fields that concern the whole tool."""

    requires: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    limits: Limits = Limits()
    cost: Cost | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    documentation: Documentation = Documentation()
    metadata: Mapping[str, object] = field(default_factory=dict)


def read_options(report: MetadataReport) -> Options:
    """Read the optional fields; what is refused is left out."""
    hosts = _texts(report, "hosts") if "hosts" in report.fields else None
    return Options(
        requires=_requires(report),
        tags=_texts(report, "tags"),
        hosts=_checked_hosts(report, hosts),
        limits=_limits(report),
        cost=_cost(report),
        config=_config(report),
        documentation=_documentation(report),
        metadata=_metadata(report),
    )


def _requires(report: MetadataReport) -> frozenset[str]:
    value = report.fields.get("requires")
    capabilities = _required_in(report, value) if isinstance(value, dict) else _texts(report, "requires")
    for index, capability in enumerate(capabilities):
        if not is_capability(capability):
            text = f"{capability[:SHOWN]!r} is not in dotted notation; write it like fs.write"
            report.refuse(("requires", index), text)
    return frozenset(capabilities)


def _required_in(report: MetadataReport, written: Mapping[str, object]) -> tuple[str, ...]:
    """The capabilities of a mapping: those that are switched on, or the list under `capabilities`."""
    found: list[str] = []
    for name, value in written.items():
        if is_capability(name) and isinstance(value, bool):
            found += [name] if value else []
        elif name in CAPABILITY_LISTS and isinstance(value, list) and all(isinstance(word, str) for word in value):
            found += value
        elif is_capability(name) or name in CAPABILITY_LISTS:
            report.refuse(("requires", name), f"must be true, false or a list, not {value!r:.40}; write - {name}")
        else:
            report.warn(("requires", name), "is not read; only capabilities stand under requires, such as fs.read")
    if not any(is_capability(name) or name in CAPABILITY_LISTS for name in written):
        report.refuse(("requires",), "must be a list, not a mapping; write one item per line")
        return ()
    words = f"[{', '.join(found)}]"
    report.warn(("requires",), f"is a mapping; write a list: requires: {words}")
    return tuple(found)


def _checked_hosts(report: MetadataReport, hosts: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if not hosts:
        return hosts
    for index, host in enumerate(hosts):
        try:
            parse_hosts([host])
        except ToolError as error:
            report.refuse(("hosts", index), error.message)
    return hosts


def _limits(report: MetadataReport) -> Limits:
    seconds = report.fields.get("timeout")
    retry, rate = _retry_policy(report), _rate(report)
    if "timeout" not in report.fields:
        return Limits(retry=retry, calls_per_minute=rate)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        text = f"must be a whole number of seconds from 1 to {MAX_TIMEOUT_SECONDS}, not {seconds!r:.40}; write 300"
        report.refuse(("timeout",), text)
        return Limits(retry=retry, calls_per_minute=rate)
    return Limits(timeout_ms=seconds * 1000, retry=retry, calls_per_minute=rate)


def _rate(report: MetadataReport) -> int | None:
    """How often the tool may be called in a minute."""
    written = _mapping(report, "limits")
    if written is None:
        return None
    warn_of_unknown_keys(report, ("limits",), written, (MAX_CALLS_KEY,))
    if MAX_CALLS_KEY not in written:
        return None
    rate = written[MAX_CALLS_KEY]
    if isinstance(rate, int) and not isinstance(rate, bool) and 0 < rate <= MAX_CALLS_PER_MINUTE:
        return rate
    text = f"must be a whole number from 1 to {MAX_CALLS_PER_MINUTE}, not {rate!r:.40}; write 60"
    report.refuse(("limits", MAX_CALLS_KEY), text)
    return None


def _retry_policy(report: MetadataReport) -> RetryPolicy | None:
    written = _mapping(report, "retry_policy")
    if written is None:
        return None
    at: Steps = ("retry_policy",)
    warn_of_unknown_keys(report, at, written, RETRY_KEYS)
    before = len(report.problems)
    attempts = written.get("max_attempts")
    if "max_attempts" not in written:
        report.warn(at, "without max_attempts nothing is tried again; write max_attempts: 3")
        attempts = 1
    if not isinstance(attempts, int) or isinstance(attempts, bool) or not 1 <= attempts <= MAX_ATTEMPTS:
        text = f"must be a whole number from 1 to {MAX_ATTEMPTS}, not {attempts!r:.40}; the first attempt counts"
        report.refuse((*at, "max_attempts"), text)
    backoff = written.get("backoff_type", Backoff.EXPONENTIAL)
    if backoff not in [*Backoff]:
        report.refuse((*at, "backoff_type"), f"{backoff!r:.40} is unknown; write one of {', '.join(Backoff)}")
    delays = [
        _number(report, at, written, key, default) for key, default in zip(RETRY_KEYS[2:], (1, 60, 2), strict=True)
    ]
    if len(report.problems) > before or not isinstance(attempts, int):
        return None
    return RetryPolicy(
        max_attempts=attempts,
        backoff=Backoff(str(backoff)),
        initial_delay=delays[0],
        max_delay=delays[1],
        multiplier=delays[2],
    )


def _cost(report: MetadataReport) -> Cost | None:
    written = _mapping(report, "cost")
    if written is None:
        return None
    warn_of_unknown_keys(report, ("cost",), written, (*COST_NUMBERS, "currency"))
    before = len(report.problems)
    numbers = {key: _number(report, ("cost",), written, key, 0) for key in COST_NUMBERS}
    currency = written.get("currency", "USD")
    if not isinstance(currency, str) or not currency.strip():
        report.refuse(("cost", "currency"), "must be the name of a currency; write USD")
    return None if len(report.problems) > before else Cost(**numbers, currency=str(currency))


def _config(report: MetadataReport) -> Mapping[str, object]:
    """The config as written, with the short forms `args`, `stdin` and `stream`; refuses only what no executor accepts."""
    config = dict(_mapping(report, "config") or {})
    for name in ("args", "stdin", "stream"):
        if name in report.fields and name in config:
            report.refuse((name,), f"stands in config too; write it once, as config: {{{name}: …}}")
        elif name in report.fields:
            config[name] = report.fields[name]
    variables = config.get("env")
    if isinstance(variables, dict):
        strange = [name for name, value in variables.items() if isinstance(value, dict | list)]
    elif isinstance(variables, list):
        strange = [
            index for index, name in enumerate(variables) if not isinstance(name, str) or not name.isidentifier()
        ]
    else:
        strange = [] if variables is None else [""]
    if strange:
        at: Steps = ("config", "env") if strange == [""] else ("config", "env", strange[0])
        report.refuse(at, "write env as a mapping of names to values, or as a list of names of host variables")
    if not isinstance(config.get("args", []), list):
        at = ("args",) if "args" in report.fields else ("config", "args")
        report.refuse(at, f"must be a list, not {name_type(config['args'])}; write one item per word")
    if not isinstance(config.get("stdin", ""), str):
        at = ("stdin",) if "stdin" in report.fields else ("config", "stdin")
        report.refuse(at, f'must be text, not {name_type(config["stdin"])}; write the argument it is: "{{text}}"')
    if not isinstance(config.get("stream", False), bool):
        at = ("stream",) if "stream" in report.fields else ("config", "stream")
        report.refuse(
            at, f"must be true or false, not {name_type(config['stream'])}; true has each printed line count at once"
        )
    return config


def _documentation(report: MetadataReport) -> Documentation:
    written = _mapping(report, "documentation")
    if written is None:
        return Documentation()
    at: Steps = ("documentation",)
    warn_of_unknown_keys(report, at, written, ("url", "examples"))
    url = written.get("url", "")
    if not isinstance(url, str):
        report.refuse((*at, "url"), f"must be text, not {name_type(url)}; write the address of a page")
        url = ""
    shown = written.get("examples", [])
    if not isinstance(shown, list):
        report.refuse((*at, "examples"), f"must be a list, not {name_type(shown)}; write one item per example")
        shown = []
    examples = [_example(report, (*at, "examples", index), item) for index, item in enumerate(shown)]
    return Documentation(
        url=url.strip(),
        texts=tuple(text for text, _ in examples if text),
        examples=tuple(example for _, example in examples if example is not None),
    )


def _example(report: MetadataReport, at: Steps, written: object) -> tuple[str, ShownCall | None]:
    """The text of an example, and its call if it has one."""
    if isinstance(written, str):
        return written, None
    arguments = written.get("arguments") if isinstance(written, dict) else None
    action = written.get("action", "") if isinstance(written, dict) else None
    if not isinstance(written, dict) or not isinstance(arguments, dict) or not isinstance(action, str):
        report.refuse(at, "must be text, or a mapping with arguments; write arguments: {name: value}")
        return "", None
    warn_of_unknown_keys(report, at, written, EXAMPLE_KEYS)
    return str(written.get("description", "")), ShownCall(arguments=arguments, action=action, at=at)


def _metadata(report: MetadataReport) -> Mapping[str, object]:
    written = _mapping(report, "metadata") or {}
    for name in SWITCHES:
        if not isinstance(written.get(name, False), bool):
            report.refuse(("metadata", name), f"must be true or false, not {name_type(written[name])}")
    for at, problem in read_icons(written.get(ICONS))[1]:
        report.warn(("metadata", *at), f"{problem}; it is not shown")
    return written


def _mapping(report: MetadataReport, name: str) -> dict[str, object] | None:
    if name not in report.fields:
        return None
    value = report.fields[name]
    if isinstance(value, dict):
        return value
    report.refuse((name,), f"must be a mapping, not {name_type(value)}; write one key per line")
    return None


def _texts(report: MetadataReport, name: str) -> tuple[str, ...]:
    value = report.fields.get(name, [])
    if not isinstance(value, list):
        report.refuse((name,), f"must be a list, not {name_type(value)}; write one item per line")
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            what = "empty text" if isinstance(item, str) else name_type(item)
            report.refuse((name, index), f"must be text, not {what}; write it in quotes")
    return tuple(item for item in value if isinstance(item, str) and item.strip())


def _number(report: MetadataReport, at: Steps, written: Mapping[str, object], key: str, default: float) -> float:
    value = written.get(key, default)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return value
    report.refuse((*at, key), f"must be a number of at least 0, not {value!r:.40}; write {default}")
    return default
