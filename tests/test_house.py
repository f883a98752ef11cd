"""The house keeps its own rules: who may open connections, start processes, and what a fresh install brings."""

import ast
import functools
import re
import subprocess
import sys
import token as token_types
import tokenize
import unicodedata
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from source_texts import syntax_of

import toolcrib

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "toolcrib"
FILES = sorted(SOURCE.rglob("*.py"))

# Calls that open a connection or start a process without importing `socket` or `subprocess`, and who may make them.
CONNECTS = {"open_connection", "open_unix_connection", "create_connection", "create_datagram_endpoint", "sock_connect"}
STARTS = {
    *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"),
    *("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "execvpe"),
    *("execl", "execle", "execlp", "execlpe", "spawnv", "spawnve", "spawnl", "startfile"),
}
OWNERS = {**dict.fromkeys(CONNECTS, "infra/egress"), **dict.fromkeys(STARTS, "infra/sandbox")}
# What loads a file and what evaluates its hints, both in the child process that runs it.
RUN_FILES = {"infra/sandbox/child/python_file.py", "infra/sandbox/child/call_arguments.py"}
BETWEEN_LINES = {token_types.COMMENT, token_types.NL}
UNSAFE = {"eval", "exec", "compile", "__import__"}
LIMITED = re.compile(rf"\b(?:{'|'.join(OWNERS)})\b|(?<!\bre\.)\b(?:{'|'.join(UNSAFE)})\b")
# Names of our own that only look like the standard library's.
OURS = {("platform", "system")}


def called_names(nodes: Iterable[ast.AST]):
    for node in nodes:
        if isinstance(node, ast.Call) and any(keyword.arg == "sock" for keyword in node.keywords):
            continue  # it wraps a connection that was handed over, and opens none
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            yield owner, node.func.attr, node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield "", node.func.id, node.lineno


@functools.cache
def all_called_names() -> list[tuple[str, str, str, int]]:
    """The calls of the modules in which a name of those stands that few may call; to parse all modules takes longer."""
    return [
        (file.relative_to(SOURCE).as_posix(), owner, name, line)
        for file in FILES
        # Python compares names in this form.
        if LIMITED.search(unicodedata.normalize("NFKC", file.read_text(encoding="utf-8")))
        for owner, name, line in called_names(syntax_of(file))
    ]


def test_only_egress_and_sandbox_open_connections_and_starts_processes():
    found = [
        f"{place}:{line} calls {owner}.{name}"
        for place, owner, name, line in all_called_names()
        if name in OWNERS and (owner, name) not in OURS and not place.startswith(OWNERS[name])
    ]
    assert found == []


def test_text_becomes_code_only_in_the_child_process():
    found = [
        f"{place}:{line} calls {name}"
        for place, owner, name, line in all_called_names()
        if owner == "" and name in UNSAFE and place not in RUN_FILES
    ]
    assert found == []


def test_nothing_is_left_open_in_the_source():
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    found = [
        f"{file}:{number}"
        for file in FILES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if marks.search(line)
    ]
    assert found == []


def test_every_exception_to_a_lint_rule_has_its_reason_beside_it():
    bare = re.compile(r"#\s*(noqa|type: ignore|fmt: skip)(:\s*[A-Z0-9, ]+|\[[a-z-, ]+\])?\s*$")
    found = [
        f"{file}:{number}"
        for file in FILES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if bare.search(line)
    ]
    assert found == []


def has_docstring(file: Path) -> bool:
    """Whether the first statement is a text; the rest of the file is not read."""
    with tokenize.open(file) as source:
        tokens = (token for token in tokenize.generate_tokens(source.readline) if token.type not in BETWEEN_LINES)
        first, second = next(tokens), next(tokens)
    return (
        first.type == token_types.STRING and second.type == token_types.NEWLINE and bool(ast.literal_eval(first.string))
    )


def test_every_module_says_what_it_is_for():
    assert [file for file in FILES if not has_docstring(file)] == []


def test_no_tracked_file_names_a_registry_or_a_path_of_a_machine():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"(/root/|/home/[a-z]+/|/work/|pypi\.org|--index-url|files\.pythonhosted)")
    texts = (ROOT / name for name in listed.stdout.splitlines() if not name.startswith(("tests/", "LICENSE")))
    assert [str(file) for file in texts if file.is_file() and pattern.search(file.read_text(errors="replace"))] == []


def test_every_dependency_has_an_upper_bound_and_the_install_stays_small():
    needed = distribution("toolcrib").requires or []
    assert [line for line in needed if "<" not in line] == []
    seen, waiting = set(), ["toolcrib"]
    while waiting:
        name = waiting.pop()
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        for line in distribution(name).requires or []:
            if (
                "extra ==" not in line
                and not re.search(r"(python_version|python_full_version) *< *['\"]3\.1[01]", line)
                and "win32" not in line
            ):
                waiting.append(re.match(r"[A-Za-z0-9._-]+", line).group())
    assert len(seen) < 45, sorted(seen)


QUICK = ("ssl", "tree_sitter", "re2", "rich", "click", "asyncio", "jsonschema_rs", "orjson", "tomllib", "typing")


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, toolcrib; print([name for name in {QUICK!r} if name in sys.modules])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # What the interpreter's own start brings (editable installs import typing) does not count.
    bare = subprocess.run(
        [sys.executable, "-c", f"import sys; print([name for name in {QUICK!r} if name in sys.modules])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ast.literal_eval(child.stdout) == sorted(ast.literal_eval(bare.stdout), key=QUICK.index) or ast.literal_eval(
        child.stdout
    ) == ["typing"]


def test_every_public_name_can_be_imported_and_is_documented():
    for name in toolcrib.__all__:
        assert getattr(toolcrib, name).__doc__, name
    assert set(toolcrib.__all__) <= set(dir(toolcrib))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        toolcrib.nonsense  # noqa: B018 - the access is the test


def test_tests_import_public_names_from_where_users_do():
    imported = re.compile(r"^ *from (toolcrib\.\S+) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
    found = [
        f"{file.relative_to(ROOT)}: {name} is public: from toolcrib import {name}"
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for module, lines, line in imported.findall(file.read_text(encoding="utf-8", errors="replace"))
        for name in re.findall(r"\w+", lines or line)
        if name in toolcrib.__all__ and toolcrib._HOMES[name] == module
    ]
    assert not found, "\n".join(found)
