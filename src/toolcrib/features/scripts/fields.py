"""Read the fields of a script's metadata: the six required ones, its actions, and the optional ones."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.features.scripts.metadata import name_type, warn_of_strangers
from toolcrib.features.scripts.schemas import Declared, read_schemas
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.lib.names import is_capability
from toolcrib.lib.positions import SHOWN
from toolcrib.lib.system_tools import FILESYSTEM, HTTP_CLIENT, PRIMITIVE, SUBPROCESS
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import MAX_ATTEMPTS, MAX_NAME, RETRY_KEYS, Backoff, Cost, Limits, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolcrib.features.scripts.metadata import Report
    from toolcrib.lib.positions import Steps


NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
# Types that need no executor: those that execute other tools, and libraries.
NEEDS_NO_EXECUTOR = frozenset({"primitive", "runtime", "library"})
SAMPLES = {
    "tool_id": "deploy-service",
    "tool_type": "script",
    "version": "1.0.0",
    "description": "What the tool does",
    "executor_id": "python_runtime",
}
PRIMITIVES = frozenset({SUBPROCESS, HTTP_CLIENT, FILESYSTEM})
RUNTIMES = {"javascript": "node_runtime", "bash": "bash"}
KEYS = ("name", "description", "parameters", "input_schema", "outputs", "output_schema")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What a tool is and what runs it; a field that was refused is empty."""

    name: str
    category: str
    tool_type: str
    version: str
    description: str
    executor: str | None


def read_identity(report: Report, root: Path) -> Identity:
    """Read the six fields; the file of a code tool may name it."""
    tool_type = _text(report, "tool_type")
    return Identity(
        name=_name(report),
        category=_category(report, root),
        tool_type=tool_type,
        version=_version(report),
        description=_text(report, "description"),
        executor=_executor(report, tool_type),
    )


def suggest_name(text: str) -> str:
    """The nearest name in kebab-case."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text[:MAX_NAME])
    return re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-") or SAMPLES["tool_id"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """Something that can be called: the tool, one action of it, or one of several functions of its file."""

    name: str
    description: str
    declared: Declared
    at: Steps = ()
    action: str = ""
    function: str = ""


def read_forms(report: Report, identity: Identity) -> list[Form]:
    """What can be called: the actions, and the tool itself if it has none or declares parameters of its own."""
    declared = read_schemas(report, (), report.fields)
    itself = Form(name=identity.name, description=identity.description, declared=declared, at=("tool_id",))
    actions = [_action(report, identity, declared, *found) for found in _entries(report)]
    forms = [itself, *actions] if declared.inputs is not None or not actions else actions
    _refuse_equal_names(report, forms)
    return forms


def _name(report: Report) -> str:
    if report.metadata.plain and "tool_id" not in report.metadata.slips:
        return _text(report, "tool_id")
    is_missing = "tool_id" not in {*report.fields, *report.metadata.refused, *report.metadata.slips}
    if is_missing:
        name = report.metadata.path.stem
        cure = f"rename it, or write {report.write('tool_id', suggest_name(name))}"
        subject = "the name of the file"
        if not report.metadata.language:
            text = f"is missing, so the file names the tool; write {report.write('tool_id', suggest_name(name))}"
            report.warn(("tool_id",), text)
    else:
        name = _text(report, "tool_id")
        cure = f"write {report.write('tool_id', suggest_name(name))}"
        subject = ""
    if not name:
        return ""
    text = f"{subject or repr(name[:SHOWN])} is not in kebab-case; {cure}"
    if not NAME.fullmatch(name):
        report.refuse(("tool_id",), text)
        return ""
    if len(name) > MAX_NAME:
        report.refuse(("tool_id",), f"is longer than {MAX_NAME} characters; shorten it")
        return ""
    if "_" in name:
        report.warn(("tool_id",), text)
    return name


def _category(report: Report, root: Path) -> str:
    path = report.metadata.path
    folder = path.parent
    if folder == root or root not in folder.parents:
        report.refuse(
            ("category",),
            f"the file must lie in a sub-folder of {root}, which is then its category; move it into one",
        )
        return ""
    expected = folder.relative_to(root).as_posix()
    written = _text(report, "category", expected)
    if written and written != expected:
        text = f"{written[:SHOWN]!r} is not the folder of the file; write {report.write('category', expected)}"
        report.refuse(("category",), text)
    return written


def _version(report: Report) -> str:
    version = _text(report, "version")
    if version and (not VERSION.fullmatch(version) or len(version) > MAX_NAME):
        report.refuse(("version",), f"{version[:SHOWN]!r} is not X.Y.Z; write {report.write('version', '1.0.0')}")
    return version


def _executor(report: Report, tool_type: str) -> str | None:
    if "executor_id" not in report.fields or report.fields["executor_id"] is not None:
        return _last_part(report, _text(report, "executor_id")) or None
    if tool_type == PRIMITIVE and (name := _platform_name(report)):
        report.warn(
            ("executor_id",), f"null means the platform's own {name}; name it as executor, and remove this file"
        )
    if tool_type and tool_type not in NEEDS_NO_EXECUTOR:
        text = f"null is for {', '.join(sorted(NEEDS_NO_EXECUTOR))}; name what runs a {tool_type[:SHOWN]!r}"
        report.refuse(("executor_id",), f"{text}: {report.write('executor_id', _sample(report, 'executor_id'))}")
    return None


def _last_part(report: Report, executor: str) -> str:
    """The name of an executor that is written as the path to its file."""
    if "/" not in executor:
        return executor
    name = executor.rstrip("/").rpartition("/")[2].removesuffix(".yaml").removesuffix(".py")
    report.warn(("executor_id",), f"{executor[:SHOWN]!r} is a path; write {report.write('executor_id', name)}")
    return name


def _platform_name(report: Report) -> str:
    """The primitive of the platform that the file is called like; empty if there is none."""
    written = report.fields.get("tool_id", report.metadata.path.stem)
    name = str(written).replace("-", "_")
    return name if name in PRIMITIVES else ""


def _sample(report: Report, name: str) -> str:
    """A sample value, in the notation of this language."""
    return RUNTIMES.get(report.metadata.language, SAMPLES[name]) if name == "executor_id" else SAMPLES[name]


def _text(report: Report, name: str, sample: str = "") -> str:
    cure = f"write {report.write(name, sample or _sample(report, name))}"
    if name in report.metadata.refused:
        return ""
    if name in report.metadata.slips:
        cure = f"write {report.metadata.notation.spell(name)} instead of {report.metadata.slips[name][:SHOWN]}"
    if name not in report.fields:
        report.refuse((name,), f"is missing; {cure}")
        return ""
    value = report.fields[name]
    if not isinstance(value, str):
        report.refuse((name,), f"must be text, not {name_type(value)}; {cure}")
        return ""
    if not value.strip():
        report.refuse((name,), f"is empty; {cure}")
    return value.strip()


def _entries(report: Report) -> Iterator[tuple[Steps, object, object]]:
    """The position, name and definition of each action, from a mapping or a list."""
    written = report.fields.get("actions", {})
    if isinstance(written, dict):
        yield from ((("actions", name), name, entry) for name, entry in written.items())
    elif isinstance(written, list):
        for index, entry in enumerate(written):
            yield ("actions", index), entry.get("name") if isinstance(entry, dict) else None, entry
    else:
        report.refuse(("actions",), f"must be a mapping or a list, not {name_type(written)}; write one key per action")


def _action(report: Report, identity: Identity, common: Declared, at: Steps, name: object, entry: object) -> Form:
    written = entry if isinstance(entry, dict) else {}
    if entry is not None and not isinstance(entry, dict):
        report.refuse(at, f"must be a mapping, not {name_type(entry)}; write description and parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        sample = suggest_name(name) if isinstance(name, str) else "deploy"
        report.refuse(at, f"{name!r:.{SHOWN}} cannot be the name of an action; write {sample}")
        name = ""
    warn_of_strangers(report, at, written, KEYS)
    joint = "_" if "_" in identity.name else "-"
    full_name = f"{identity.name}{joint}{name}"
    if len(full_name) > MAX_NAME:
        report.refuse(at, f"{full_name[:SHOWN]} is longer than {MAX_NAME} characters; shorten one of the names")
    declared = read_schemas(report, at, written)
    if declared.outputs is None:
        declared = Declared(inputs=declared.inputs, outputs=common.outputs)
    description = _description(report, at, written, identity)
    return Form(name=full_name, description=description, declared=declared, at=at, action=name)


def _description(report: Report, at: Steps, written: dict[str, object], identity: Identity) -> str:
    text = written.get("description")
    if isinstance(text, str) and text.strip():
        return text.strip()
    if text is not None:
        report.refuse((*at, "description"), "must be text that is not empty; write what the action does")
    else:
        report.warn(at, "has no description; write what the action does")
    return identity.description


def _refuse_equal_names(report: Report, forms: list[Form]) -> None:
    seen: set[str] = set()
    for form in forms:
        slug = form.name.replace("_", "-")
        if slug in seen:
            report.refuse(form.at, f"there are two of the name {slug}; rename one")
        seen.add(slug)


MAX_TIMEOUT_SECONDS = 7 * 24 * 3600
COST_NUMBERS = ("per_invocation", "per_minute", "estimated_duration")
EXAMPLE_KEYS = ("arguments", "action", "description", "output")
SWITCHES = ("deprecated", "experimental")
CAPABILITY_LISTS = frozenset({"capabilities", "permissions"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """Arguments that the author showed, for the tool itself or for one of its actions."""

    arguments: dict[str, object]
    at: Steps
    action: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Documentation:
    """A link, texts to show, and example calls."""

    url: str = ""
    texts: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()

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


def read_options(report: Report) -> Options:
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


def _requires(report: Report) -> frozenset[str]:
    value = report.fields.get("requires")
    capabilities = _required_in(report, value) if isinstance(value, dict) else _texts(report, "requires")
    for index, capability in enumerate(capabilities):
        if not is_capability(capability):
            text = f"{capability[:SHOWN]!r} is not in dotted notation; write it like fs.write"
            report.refuse(("requires", index), text)
    return frozenset(capabilities)


def _required_in(report: Report, written: Mapping[str, object]) -> tuple[str, ...]:
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


def _checked_hosts(report: Report, hosts: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if not hosts:
        return hosts
    for index, host in enumerate(hosts):
        try:
            parse_hosts([host])
        except ToolError as error:
            report.refuse(("hosts", index), error.message)
    return hosts


def _limits(report: Report) -> Limits:
    seconds = report.fields.get("timeout")
    retry = _retry_policy(report)
    if "timeout" not in report.fields:
        return Limits(retry=retry)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        text = f"must be a whole number of seconds from 1 to {MAX_TIMEOUT_SECONDS}, not {seconds!r:.40}; write 300"
        report.refuse(("timeout",), text)
        return Limits(retry=retry)
    return Limits(timeout_ms=seconds * 1000, retry=retry)


def _retry_policy(report: Report) -> RetryPolicy | None:
    written = _mapping(report, "retry_policy")
    if written is None:
        return None
    at: Steps = ("retry_policy",)
    warn_of_strangers(report, at, written, RETRY_KEYS)
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


def _cost(report: Report) -> Cost | None:
    written = _mapping(report, "cost")
    if written is None:
        return None
    warn_of_strangers(report, ("cost",), written, (*COST_NUMBERS, "currency"))
    before = len(report.problems)
    numbers = {key: _number(report, ("cost",), written, key, 0) for key in COST_NUMBERS}
    currency = written.get("currency", "USD")
    if not isinstance(currency, str) or not currency.strip():
        report.refuse(("cost", "currency"), "must be the name of a currency; write USD")
    return None if len(report.problems) > before else Cost(**numbers, currency=str(currency))


def _config(report: Report) -> Mapping[str, object]:
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


def _documentation(report: Report) -> Documentation:
    written = _mapping(report, "documentation")
    if written is None:
        return Documentation()
    at: Steps = ("documentation",)
    warn_of_strangers(report, at, written, ("url", "examples"))
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


def _example(report: Report, at: Steps, written: object) -> tuple[str, Example | None]:
    """The text of an example, and its call if it has one."""
    if isinstance(written, str):
        return written, None
    arguments = written.get("arguments") if isinstance(written, dict) else None
    action = written.get("action", "") if isinstance(written, dict) else None
    if not isinstance(written, dict) or not isinstance(arguments, dict) or not isinstance(action, str):
        report.refuse(at, "must be text, or a mapping with arguments; write arguments: {name: value}")
        return "", None
    warn_of_strangers(report, at, written, EXAMPLE_KEYS)
    return str(written.get("description", "")), Example(arguments=arguments, action=action, at=at)


def _metadata(report: Report) -> Mapping[str, object]:
    written = _mapping(report, "metadata") or {}
    for name in SWITCHES:
        if not isinstance(written.get(name, False), bool):
            report.refuse(("metadata", name), f"must be true or false, not {name_type(written[name])}")
    return written


def _mapping(report: Report, name: str) -> dict[str, object] | None:
    if name not in report.fields:
        return None
    value = report.fields[name]
    if isinstance(value, dict):
        return value
    report.refuse((name,), f"must be a mapping, not {name_type(value)}; write one key per line")
    return None


def _texts(report: Report, name: str) -> tuple[str, ...]:
    value = report.fields.get(name, [])
    if not isinstance(value, list):
        report.refuse((name,), f"must be a list, not {name_type(value)}; write one item per line")
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            what = "empty text" if isinstance(item, str) else name_type(item)
            report.refuse((name, index), f"must be text, not {what}; write it in quotes")
    return tuple(item for item in value if isinstance(item, str) and item.strip())


def _number(report: Report, at: Steps, written: Mapping[str, object], key: str, default: float) -> float:
    value = written.get(key, default)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return value
    report.refuse((*at, key), f"must be a number of at least 0, not {value!r:.40}; write {default}")
    return default
