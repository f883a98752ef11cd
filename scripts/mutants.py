"""Change the source in small ways, one at a time, and tell which changes no test notices.

`python scripts/mutants.py core/rules.py infra/egress` mutates these files and folders of `src/toolcrib`; without words, all that TESTS names.
mutmut does it, in an environment of its own and on a copy of the repository, both in `.judges/mutants`; what was found stays there:
`--show NAME` prints one mutant. `--sample` tries a fifth of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".judges" / "mutants"
TREE, ENVIRONMENT = PLACE / "tree", PLACE / "env"
PACKAGES = ("mutmut>=3.8,<3.9", "-r", str(ROOT / "requirements-dev.txt"))
SOURCE = "src/toolcrib"
SHOWN_LETTERS = 4_000
# What is mutated, and the tests that should notice. The first that fits counts.
TESTS = {
    "core/catalog": ("tests/core/catalog", "tests/pins/test_names.py"),
    "core/grants": ("tests/core/test_grants.py", "tests/infra/test_settings.py"),
    "core/journal": ("tests/core/journal", "tests/contracts/test_journals.py"),
    "core/rules": ("tests/core/test_rules.py", "tests/features/safety_rules"),
    "core": ("tests/core", "tests/pins/test_fast_path.py", "tests/test_crib.py"),
    "features/safety_rules": ("tests/features/safety_rules", "tests/core/test_rules.py"),
    "infra/egress": ("tests/infra/egress",),
    "infra/files/jail": ("tests/infra/files/test_jail.py", "tests/infra/files/test_races.py"),
    "features/bundles/format.py": ("tests/features/bundles/format", "tests/seeds/test_platform_document.py"),
    "features/folders/format.py": ("tests/features/folders/format", "tests/seeds/test_tool_folders.py"),
    "features/http_tools": (
        "tests/features/http_tools",
        "tests/features/bundles/format",
        "tests/features/scripts/test_http.py",
    ),
    "features/python_files/format.py": ("tests/features/python_files",),
    "features/python_files/program_format.py": ("tests/features/python_files",),
    "features/requests/document": ("tests/features/requests/document", "tests/seeds/test_tool_requests.py"),
    "features/scripts/format.py": ("tests/features/scripts/format", "tests/seeds/test_script_files.py"),
}
# mutmut asks items for a name that pytest 9 no longer keeps, and runs the tests several times in one process.
SHIM = '''"""Gives items the attribute that mutmut reads, forgets the modules that tests wrote, and lets a property run twice."""

import sys

import hypothesis


def pytest_collection():
    # A method is another object in each run, which Hypothesis takes for a mistake.
    again = hypothesis.HealthCheck.differing_executors
    profile = hypothesis.settings(suppress_health_check=[*hypothesis.settings().suppress_health_check, again])
    hypothesis.settings.register_profile("mutants", profile)
    hypothesis.settings.load_profile("mutants")


def pytest_collection_modifyitems(items):
    for item in items:
        item._nodeid = item.nodeid


def pytest_sessionfinish():
    for name, module in list(sys.modules.items()):
        if "/pytest-of-" in str(getattr(module, "__file__", None)):
            del sys.modules[name]
'''
# Mutants of a function are numbered: the first and every fifth after it.
A_FIFTH = "*__mutmut_*[16]"


def tests_of(part: str) -> list[str]:
    """The tests that should notice a mutant of this file or folder."""
    for prefix, tests in TESTS.items():
        if part.startswith(prefix):
            return list(tests)
    folder = part.removesuffix(".py")
    while not (ROOT / "tests" / folder).is_dir() and "/" in folder:
        folder = folder.rpartition("/")[0]
    return [f"tests/{folder}"]


def install(*words: str) -> None:
    """Install packages into the environment, with uv where it can be had and knows them."""
    python = str(ENVIRONMENT / "bin" / "python")
    quick = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", python, *words]
    if subprocess.run(quick, check=False).returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words], check=True)


def prepare() -> None:
    """Make the environment once, and a fresh copy of what is in the repository or could be."""
    if not (ENVIRONMENT / "ready").is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        install(*PACKAGES)
        (ENVIRONMENT / "ready").touch()
    shutil.rmtree(TREE, ignore_errors=True)
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name)
    (TREE / "mutmut_shim.py").write_text(SHIM, encoding="utf-8")
    # The names of the package and of its entry points; the code is the one of the copy.
    install("--no-deps", "-e", str(TREE))


def configure(parts: list[str]) -> None:
    """Say what is mutated and which tests should notice."""
    only = [f"{SOURCE}/{part}" if part.endswith(".py") else f"{SOURCE}/{part}/*" for part in parts]
    tests = sorted({test for part in parts for test in tests_of(part)})
    copied = sorted(entry.name for entry in TREE.iterdir() if entry.name not in {"src", "tests", "pyproject.toml"})
    lines = [
        "",
        "[tool.mutmut]",
        'source_paths = ["src"]',
        f"only_mutate = {only!r}",
        'pytest_add_cli_args = ["-p", "no:randomly", "-p", "no:xdist", "-p", "mutmut_shim"]',
        f"pytest_add_cli_args_test_selection = {tests!r}",
        f"also_copy = {copied!r}",
    ]
    with (TREE / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def mutmut(*words: str) -> subprocess.CompletedProcess[str]:
    """Run it in the copy."""
    path = os.pathsep.join([str(ENVIRONMENT / "bin"), os.environ.get("PATH", "")])
    variables = {**os.environ, "PATH": path, "PYTHONPATH": str(TREE)}
    command = [str(ENVIRONMENT / "bin" / "mutmut"), *words]
    return subprocess.run(command, cwd=TREE, env=variables, text=True, check=False, stdout=subprocess.PIPE)


def report() -> bool:
    """Tell the rate, and each mutant that was not noticed; False if none was judged."""
    states: dict[str, list[str]] = {}
    for line in mutmut("results", "--all", "true").stdout.splitlines():
        name, _, state = line.strip().rpartition(": ")
        if name:
            states.setdefault(state, []).append(name)
    for name in sorted(states.get("survived", []) + states.get("no tests", [])):
        print(f"survived  {name}")
    noticed = sum(len(states.get(state, [])) for state in ("killed", "timeout", "segfault", "suspicious"))
    judged = noticed + len(states.get("survived", [])) + len(states.get("no tests", []))
    print(f"{noticed} of {judged} mutants were noticed; {sum(map(len, states.values())) - judged} were not judged")
    print("look at one: make mutants ARGS='--show NAME'")
    return judged > 0


def main() -> int:
    """Mutate, and report."""
    parser = argparse.ArgumentParser(
        description="Change the source in small ways and tell which changes no test notices."
    )
    parser.add_argument("parts", nargs="*", help="files and folders of src/toolcrib, such as core/rules.py")
    parser.add_argument("--sample", action="store_true", help="try a fifth of the mutants, some of every function")
    parser.add_argument("--show", metavar="NAME", help="print one mutant of the last run")
    options = parser.parse_args()
    if options.show:
        print(mutmut("show", options.show).stdout)
        return 0
    parts = options.parts or [part for part in TESTS if (ROOT / SOURCE / part).exists()]
    for part in parts:
        if not (ROOT / SOURCE / part).exists():
            parser.error(f"there is no {SOURCE}/{part}")
    prepare()
    configure(parts)
    done = mutmut("run", A_FIFTH) if options.sample else mutmut("run")
    if report():
        return 0
    print(done.stdout[-SHOWN_LETTERS:])
    return 1


if __name__ == "__main__":
    sys.exit(main())
