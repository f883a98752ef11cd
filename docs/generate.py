"""Writes the pages that can be read off the code and the tests. Run it with: make docs."""  # noqa: INP001 - a program, not a package

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
import re
import sys
import tomllib
from dataclasses import MISSING, Field, dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ForwardRef

import click

import toolcrib
from toolcrib import Crib, Kind
from toolcrib.core import gates
from toolcrib.core.plugins import Plugins
from toolcrib.features.functions.decorators import Options
from toolcrib.infra.settings import ENVIRONMENT_PREFIX
from toolcrib.interfaces.cli.program import cli
from toolcrib.lib.hidden_text import PATTERN
from toolcrib.model import protocols
from toolcrib.toolkit.cli import MEANINGS
from toolcrib.toolkit.cli.group import WordsCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
NOTICE = "<!-- Written by docs/generate.py; change the code, the tests or the .toml beside it, then run: make docs -->"
NO_TEXT = "(no text)"
PROTOCOLS = (
    *(
        "Format",
        "Source",
        "Converter",
        "Rule",
        "Runner",
        "Bound",
        "Journal",
        "Store",
        "Queue",
        "Maker",
        "ApprovalStore",
        "MakerTask",
    ),
)
LONGEST_LINE = 100
GATES = (
    "What every call passes, in this order; `crib explain` runs the same gates without making the call. After the last one a single step consumes "
    "rate, budget and confirmation, the tool runs, its value is checked against the output schema, and the journal gets a line."
)


def pages(marks: dict[str, list[str]]) -> dict[Path, str]:
    """Every generated page as it should be, with the tests of each row of the specification."""
    settings, architecture = DOCS / "settings.md", DOCS / "architecture.md"
    layout = _load_layout()
    house = layout.House.read()
    shown = _fill(architecture.read_text(encoding="utf-8"), "imports", layout.import_graph(house))
    return {
        architecture: _fill(shown, "figures", layout.figures_table(house)),
        DOCS / "specification.md": specification(read_texts("specification"), marks),
        DOCS / "reference.md": reference(read_texts("kinds")),
        settings: _fill(settings.read_text(encoding="utf-8"), "settings", settings_tables()),
        ROOT / "web" / "src" / "hidden.ts": hidden_table(),
    }


def hidden_table() -> str:
    """The table of hidden characters for the web page."""
    pattern = re.sub(r"\\U([0-9a-f]{8})", lambda found: rf"\u{{{int(found[1], 16):x}}}", PATTERN)
    notice = "// Written by docs/generate.py from toolcrib/lib/hidden_text.py; only what the group matches is hidden."
    return f"{notice}\nexport const HIDDEN = /{pattern}/gu;\n"


def _load_layout() -> ModuleType:
    """scripts/house.py as a module: it measures the layout for the linters too, and lies in no package."""
    spec = importlib.util.spec_from_file_location("toolcrib_layout", ROOT / "scripts" / "house.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError("scripts/house.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Write the pages that are not as they should be."""
    for page, text in pages(find_marks(ROOT / "tests")).items():
        is_stale = not page.is_file() or page.read_text(encoding="utf-8") != text
        if is_stale:
            page.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'wrote' if is_stale else 'kept '}  {page.relative_to(ROOT)}\n")
    return 0


def read_texts(name: str) -> dict[str, str]:
    """The lines of words in a `.toml` beside this file."""
    return tomllib.loads((DOCS / f"{name}.toml").read_text(encoding="utf-8"))


def find_marks(folder: Path) -> dict[str, list[str]]:
    """The rows that tests are marked with, each with its tests; read from the syntax, so nothing is imported."""
    found: dict[str, set[str]] = {}
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if ".spec(" not in text:
            continue  # to parse it would take longer than all the rest
        module = ast.parse(text)
        for test, marks in _tests_in(module.body, [], _module_marks(module)):
            for row in marks:
                found.setdefault(row, set()).add(f"{file.relative_to(folder.parent).as_posix()}::{test}")
    return {row: sorted(tests) for row, tests in sorted(found.items(), key=lambda item: _by_number(item[0]))}


def specification(rows: dict[str, str], marks: dict[str, list[str]]) -> str:
    """The page that says what is proved, and by which tests."""
    lines = [
        "# What is proved",
        "",
        NOTICE,
        "",
        "One line for each promise that a test proves. A test names the rows it proves with `@pytest.mark.spec`.",
        "",
    ]
    for row, tests in marks.items():
        lines += [f"- **{row}** {rows.get(row, NO_TEXT)}", *(f"  - `{test}`" for test in tests)]
    return "\n".join(lines) + "\n"


def settings_tables() -> str:
    """Every table of the settings with its keys: default, variable, whether it opens something, and what it means."""
    parts = []
    for name, declaration in Plugins().tables().items():
        head = f"[[{name}]]" if declaration.is_array else f"[{name}]"
        rows = [
            (
                "a name" if declaration.is_map else f"`{each.key or name}`",
                _spell_lines(each.default) if declaration.is_map else _spell(each.default, ticks=True),
                f"`{ENVIRONMENT_PREFIX}{each.variable}`" if each.by_variable else "-",
                "yes" if each.opens else "no",
                each.summary,
            )
            for each in declaration.declared.values()
        ]
        columns = ("key", "default", "variable", "opens", "what it means")
        parts += [f"### {head}", _text(declaration), _table(columns, rows)]
    return "\n\n".join(parts)


def reference(kinds: dict[str, str]) -> str:
    """The page of names: what can be imported, what can go wrong, what can be typed."""
    names = [part for name in toolcrib.__all__ for part in _describe(name, getattr(toolcrib, name))]
    parts = [part for name in PROTOCOLS for part in _describe(name, getattr(protocols, name))]
    sections = [
        ["# Names, errors and commands", NOTICE],
        ["## Names", "Everything here is imported from `toolcrib`.", *names],
        ["## Parts", "What a plug-in can be; everything here is imported from `toolcrib.model.protocols`.", *parts],
        [
            "## Registry",
            "What a plug-in registers in; imported from `toolcrib.core.plugins`.",
            *_describe("Plugins", Plugins),
        ],
        [
            "## Kinds of errors",
            _table(("kind", "means"), [(f"`{kind}`", kinds.get(kind, NO_TEXT)) for kind in Kind]),
        ],
        ["## Gates", GATES, _table(("gate", "what it does"), _gates())],
        ["## Commands", *(part for command in _commands() for part in _describe_command(*command))],
        ["## Exit codes", _table(("code", "means"), [(str(int(code)), text) for code, text in MEANINGS.items()])],
    ]
    return "\n\n".join(part for section in sections for part in section) + "\n"


@dataclass(frozen=True, slots=True)
class Shown:
    """A parameter as a signature shows it."""

    name: str
    hint: str
    default: str

    def __str__(self) -> str:
        text = f"{self.name}: {self.hint}" if self.hint else self.name
        return f"{text} = {self.default}" if self.default else text


def _tests_in(
    body: Iterable[ast.stmt], path: Sequence[str], marks: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        own = marks.union(*map(_marks, node.decorator_list))
        name = [*path, node.name]
        if isinstance(node, ast.ClassDef):
            yield from _tests_in(node.body, name, own)
        elif node.name.startswith("test"):
            yield "::".join(name), own


def _module_marks(module: ast.Module) -> frozenset[str]:
    assigned = (node for node in module.body if isinstance(node, ast.Assign))
    named = (
        node for node in assigned if any(isinstance(to, ast.Name) and to.id == "pytestmark" for to in node.targets)
    )
    return frozenset().union(*(_marks(node.value) for node in named))


def _marks(tree: ast.AST) -> frozenset[str]:
    """The rows in every `pytest.mark.spec(…)` of a decorator, those inside `pytest.param` too."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    marks = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "spec")
    words = (word for call in marks for word in call.args)
    return frozenset(word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str))


def _by_number(row: str) -> tuple[object, ...]:
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", row))


def _describe(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}"
    if isinstance(value, type) and issubclass(value, Enum):
        yield _text(value)
        return
    yield f"```python\n{_head(name, value)}\n```"
    yield _text(value)
    if value is toolcrib.tool:
        rows = [(f"`{name}`", f"`{_hint(hint)}`") for name, hint in Options.__annotations__.items()]
        yield _table(("option", "type"), rows)
    members = list(_members(value)) if isinstance(value, type) else []
    if members:
        yield "\n".join(f"- `{member}` {' '.join(text.split())}".rstrip() for member, text in members)


def _head(name: str, value: Any) -> str:
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        star = [Shown("*", "", "")] if fields[0].kw_only else []
        return _call(
            name, star + [Shown(field.name, _hint(field.type), _default(field, ticks=False)) for field in fields]
        )
    if getattr(value, "_is_protocol", False):
        return f"class {name}(Protocol)"
    return _call(name, _parameters(value))


def _members(kind: type) -> Iterator[tuple[str, str]]:
    for name, member in vars(kind).items():
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, property | cached_property):
            yield name, _text(member)
        elif inspect.isfunction(member):
            answer = _hint(inspect.signature(member).return_annotation)
            yield f"{_call(name, _parameters(member)[1:], wrap=False)} -> {answer}", _text(member)
    if getattr(kind, "_is_protocol", False):
        yield from ((f"{name}: {_hint(hint)}", "") for name, hint in inspect.get_annotations(kind).items())


def _parameters(value: Any) -> list[Shown]:
    shown: list[Shown] = []
    parameters = list(inspect.signature(value).parameters.values())
    for place, known in enumerate(parameters):
        before = parameters[place - 1].kind if place else None
        if known.kind is known.KEYWORD_ONLY and before not in {known.KEYWORD_ONLY, known.VAR_POSITIONAL}:
            shown.append(Shown("*", "", ""))
        stars = {known.VAR_POSITIONAL: "*", known.VAR_KEYWORD: "**"}.get(known.kind, "")
        default = "" if known.default is known.empty else _spell(known.default, ticks=False)
        shown.append(
            Shown(stars + known.name, "" if known.annotation is known.empty else _hint(known.annotation), default)
        )
        after = parameters[place + 1].kind if place + 1 < len(parameters) else None
        if known.kind is known.POSITIONAL_ONLY is not after:
            shown.append(Shown("/", "", ""))
    return shown


def _call(name: str, shown: Sequence[Shown], *, wrap: bool = True) -> str:
    line = f"{name}({', '.join(map(str, shown))})"
    if not wrap or len(line) <= LONGEST_LINE:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + ")"


def _hint(hint: object) -> str:
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    return hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))


def _text(value: object) -> str:
    return inspect.getdoc(value) or ""


def _default(field: Field[Any], *, ticks: bool = True) -> str:
    if field.default_factory is not MISSING:
        return _spell(field.default_factory(), ticks=ticks)
    return "" if field.default is MISSING else _spell(field.default, ticks=ticks)


def _spell(value: object, *, ticks: bool) -> str:
    """A default: as Python writes it, or with ticks as the settings file does."""
    if not ticks and dataclasses.is_dataclass(value):
        return f"{type(value).__name__}()"
    if not ticks:
        return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | frozenset):
        return "`[" + ", ".join(f'"{item}"' for item in sorted(value)) + "]`"
    if value is None or value == "":
        return "none"
    return "the project" if value == Path() else f"`{value}`"


def _spell_lines(lines: Any) -> str:
    """The default of a table whose keys are words of the operator."""
    return ", ".join(f'`"{word}" = {_spell(value, ticks=True).strip("`")}`' for word, value in lines.items())


def _gates() -> list[tuple[str, str]]:
    texts = {
        kind.name: " ".join(_text(kind).partition("\n\n")[0].split())
        for kind in vars(gates).values()
        if isinstance(kind, type) and hasattr(kind, "judge") and hasattr(kind, "name")
    }
    with Crib(builtins={"enabled": False}, environment={}) as crib:
        names = [finding.gate for finding in crib.explain("nothing").findings]
    return [(f"`{name}`", texts.get(name, "Refuses an unknown name.")) for name in names]


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that start it, those of a group after the group itself."""
    yield from _commands_of(cli, "crib")


def _commands_of(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name  # noqa: S101 - the group lists it
        yield f"{words} {name}", command
        if isinstance(command, click.Group):
            yield from _commands_of(command, f"{words} {name}")


def _describe_command(words: str, command: click.Command) -> Iterator[str]:
    context = command.make_context(words, [], resilient_parsing=True)
    yield f"{'#' * (words.count(' ') + 2)} {words}"
    usage = " ".join(command.collect_usage_pieces(context))
    help_text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    yield f"```text\n{words} {usage}\n\n{help_text.rstrip()}\n```"
    rows = list(_options(command, context))
    if rows:
        yield _table(("option", "what it does"), rows)


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    if isinstance(command, WordsCommand):
        for known in command.options:
            yield f"`{', '.join(sorted(known.spellings, key=len))} {known.value}".rstrip() + "`", known.help
        return
    for parameter in command.params:
        if parameter.param_type_name == "option":
            spelled = ", ".join(sorted(parameter.opts, key=len))
            value = "" if getattr(parameter, "is_flag", False) else parameter.make_metavar(context)
            yield f"`{spelled} {value}".rstrip() + "`", str(getattr(parameter, "help", ""))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in line) + " |" for line in lines)


def _fill(text: str, name: str, content: str) -> str:
    """The text with what stands between `<!-- name -->` and `<!-- /name -->` replaced."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"the page has no place for {name}; write <!-- {name} --> and <!-- /{name} -->")
    return pattern.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)


if __name__ == "__main__":
    sys.exit(main())
