"""Every text of the source that names a module of ours names one that is there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import textwrap
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import toolcrib

SOURCE = Path(toolcrib.__file__).parent
ROOT = SOURCE.parent.parent
NAME = re.compile(r"toolcrib(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*(?:\.\w+)*)?")
# Names that begin as ours do and are not modules, each with what it is.
OTHERS = {
    "toolcrib.plugins": "the group of entry points",
    "toolcrib.toml": "the file of settings",
    "toolcrib.route": "what layers of the HTTP application tell each other about a request",
    "toolcrib.request_id": "likewise",
    "toolcrib.caller": "likewise",
    "toolcrib.holder": "likewise",
    "toolcrib.request": "likewise",
}
# Loggers have names of their own; outside of this call such a name must be that of a logger too.
LOGGER = "getLogger"


def texts_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every text with its line, but docstrings, which nothing runs, and names of loggers."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                skipped.add(id(first.value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == LOGGER:
            skipped |= {id(argument) for argument in node.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value, node.lineno


def loggers() -> set[str]:
    pattern = re.compile(rf'{LOGGER}\("(toolcrib[\w.]*)"\)')
    return {name for file in SOURCE.rglob("*.py") for name in pattern.findall(file.read_text(encoding="utf-8"))}


def code_in(text: str) -> ast.AST | None:
    """The code that a text is, where it is some and imports anything of ours."""
    if not re.search(r"^\s*(?:from|import) toolcrib", text, re.MULTILINE):
        return None
    # A text that is to be formatted holds braces, and a piece of code may end in the middle of a statement.
    for attempt in (text, text.replace("{{", "{").replace("}}", "}"), re.sub(r"\{\w*(?:![rsa])?\}", "x", text)):
        try:
            return ast.parse(textwrap.dedent(attempt))
        except SyntaxError:
            continue
    named = re.findall(r"^\s*(?:from|import) (toolcrib[\w.]*)", text, re.MULTILINE)
    return ast.Module(body=[ast.Import(names=[ast.alias(name=name)]) for name in named], type_ignores=[])


def imports_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.partition(".")[0] == "toolcrib")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "toolcrib":
            yield from (f"{node.module}:{name.name}" for name in node.names)


def names_in(text: str) -> Iterator[str]:
    """The names of ours in a text: the text itself, or what the code imports and names that the text is."""
    if NAME.fullmatch(text):
        yield text
    elif (code := code_in(text)) is not None:
        yield from imports_in(code)
        yield from (name for inner, _ in texts_of(code) for name in names_in(inner))


def named() -> Iterator[tuple[str, str]]:
    """Where each name stands, and the name."""
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        # Most files only import what is ours, and the interpreter looks after that. Below the imports of a file they stand in texts.
        head, *rest = re.split(r"^(?=def |class |async |@|[A-Z_]+\b)", text, maxsplit=1, flags=re.MULTILINE)
        head = re.sub(r"^\s*(?:from|import) toolcrib[\w.]*", "", head, flags=re.MULTILINE)
        if "toolcrib" not in head + "".join(rest):
            continue
        tree = ast.parse(text)
        place = file.relative_to(SOURCE).as_posix()
        yield from ((f"{place}:{line}", name) for text, line in texts_of(tree) for name in names_in(text))
        yield from ((f"{place} (table)", name) for name in tables_in(tree))


def tables_in(tree: ast.AST) -> Iterator[str]:
    """What a table says that maps the name of a thing to the module it lives in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and node.values:
            pairs = [(_text(key), _text(value)) for key, value in zip(node.keys, node.values, strict=True)]
            if all(value and NAME.fullmatch(value) and ":" not in value for _, value in pairs):
                yield from (f"{module}:{name}" for name, module in pairs)


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def resolve(name: str) -> object:
    """What a name stands for: a module, a part of one after a colon, or the last word of a dotted name."""
    module, _, path = name.partition(":")
    if not path and importlib.util.find_spec(module.rpartition(".")[0]) and _is_missing(module):
        module, _, path = module.rpartition(".")
    found: object = importlib.import_module(module)
    for word in filter(None, path.split(".")):
        if not hasattr(found, word) and not _is_missing(f"{module}.{word}"):
            return importlib.import_module(f"{module}.{word}")
        found = getattr(found, word)
    return found


def _is_missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True


def test_every_text_that_names_a_module_of_ours_names_one_that_is_there():
    stale = []
    others = OTHERS.keys() | loggers()
    found = {(place, name) for place, name in named() if name not in others}
    assert len(found) > 40, "the search finds less than there is"
    for place, name in sorted(found):
        try:
            resolve(name)
        except (ImportError, AttributeError) as problem:
            stale.append(f"{place} names {name}: {problem}")
    assert stale == []


def test_the_search_finds_a_name_at_any_place_of_the_text():
    code = textwrap.dedent(
        """
        A = "toolcrib.gone"
        B = {"Crib": "toolcrib.gone_too"}
        C = "toolcrib.crib:Gone"
        D = "import sys\\nfrom toolcrib.gone.again import main\\nfor name in ('toolcrib.gone_last',): pass\\n"
        E = sys.modules.get("toolcrib.gone_quietly")
        F = f"from toolcrib.gone_formatted import {A}\\n"
        """
    )
    tree = ast.parse(code)
    found = {name for text, _ in texts_of(tree) for name in names_in(text)} | set(tables_in(tree))
    assert found >= {
        *("toolcrib.gone", "toolcrib.gone_too", "toolcrib.gone_too:Crib", "toolcrib.crib:Gone"),
        *("toolcrib.gone.again:main", "toolcrib.gone_last", "toolcrib.gone_quietly", "toolcrib.gone_formatted"),
    }
    for name in found:
        with pytest.raises((ImportError, AttributeError)):
            resolve(name)


def test_what_the_packaging_names_is_there():
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    points = [point for group in project["entry-points"].values() for point in group.values()]
    for name in [*project["scripts"].values(), *points]:
        assert resolve(name) is not None
    contracts = document["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        listed = [*contract.get("containers", ()), *contract.get("modules", ()), *contract.get("source_modules", ())]
        listed += [
            side.removesuffix(".**") for pair in contract.get("ignore_imports", ()) for side in pair.split(" -> ")
        ]
        for name in (name.removesuffix(".*") for name in listed):
            if name.partition(".")[0] == "toolcrib":
                assert not _is_missing(name), f"{contract['name']}: {name}"


def test_files_beside_the_code_are_found_where_the_code_looks_for_them():
    looked_for = re.compile(r'files\("(toolcrib[\w.]*)"\)(?:\.joinpath\("([^"]+)"\)| / "([^"]+)")')
    found = [
        (match[1], match[2] or match[3])
        for file in SOURCE.rglob("*.py")
        for match in looked_for.finditer(file.read_text(encoding="utf-8"))
    ]
    assert found
    for package, name in found:
        place = files(package).joinpath(name)
        assert place.is_file() or place.is_dir(), f"{package}: {name}"
    beside = re.compile(r'Path\(__file__\)\.(?:resolve\(\)\.)?(?:parent|with_name\("([^"]+)"\))(?: / "([^"]+)")?')
    for file in SOURCE.rglob("*.py"):
        for match in beside.finditer(file.read_text(encoding="utf-8")):
            name = match[1] or match[2]
            assert name is None or (file.parent / name).exists(), f"{file}: {name}"
