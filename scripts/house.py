"""Measure the layout of the source and fail where it left its limits.

`python scripts/house.py` prints the figures and checks the limits; `--page` prints them as docs/architecture.md shows them.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "toolcrib"
SOURCE = ROOT / "src" / PACKAGE
# File names that every feature may have: they say which part of the feature a file is.
SHARED_NAMES = frozenset(
    (
        *("__init__.py", "__main__.py", "format.py", "source.py", "runner.py"),
        *("settings.py", "commands.py", "endpoints.py"),
    )
)
LIMITS = {"core and model lines": 8_000, "hidden imports": 0, "cycles": 0, "gerund names": 20}
LAYERS = ("interfaces", "crib", "client", "features", "toolkit", "core", "infra", "lib", "model", "values")
MANY_IMPORTS = 50
REPORTED = {"files": 280, "lines": 67_000}


@dataclass(frozen=True, kw_only=True)
class Import:
    """An import of one of our modules by another."""

    target: str
    hidden: bool
    typing: bool


@dataclass
class House:
    """The source as a graph of modules."""

    modules: dict[str, Path] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    imports: dict[str, list[Import]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> House:
        """Read every module below `src`."""
        house = cls()
        for path in sorted(SOURCE.rglob("*.py")):
            parts = (PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts)
            house.modules[".".join(parts).removesuffix(".__init__")] = path
        for name, path in house.modules.items():
            text = path.read_text(encoding="utf-8")
            house.lines[name] = text.count("\n")
            house.imports[name] = list(house.imports_of(ast.parse(text)))
        return house

    def imports_of(self, tree: ast.Module) -> list[Import]:
        """The imports of our own modules in a file, with where they stand."""
        found: list[Import] = []

        def walk(node: ast.AST, *, hidden: bool, typing: bool) -> None:
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                    continue  # expressions are most of a file, and hold no imports
                found.extend(Import(target=name, hidden=hidden, typing=typing) for name in self._targets(child))
                walk(
                    child,
                    hidden=hidden or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef),
                    typing=typing or (isinstance(child, ast.If) and names_type_checking(child.test)),
                )

        walk(tree, hidden=False, typing=False)
        return found

    def _targets(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE]
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == PACKAGE:
            deeper = [f"{node.module}.{alias.name}" for alias in node.names]
            return [name if name in self.modules else str(node.module) for name in deeper]
        return []

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Who imports each module."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, imports in self.imports.items():
            for each in imports:
                found[each.target].add(name)
        return found

    def cycles(self) -> list[list[str]]:
        """Groups of modules that import each other, also for type checking alone."""
        graph = {
            name: sorted({each.target for each in imports if each.target in self.modules and each.target != name})
            for name, imports in self.imports.items()
        }
        return [sorted(group) for group in components(graph) if len(group) > 1]

    def figures(self) -> dict[str, int]:
        """What is limited or reported."""
        names = Counter(path.name for path in self.modules.values() if path.name not in SHARED_NAMES)
        core = (f"{PACKAGE}.core", f"{PACKAGE}.model")
        return {
            "files": len(self.modules),
            "lines": sum(self.lines.values()),
            "core and model lines": sum(count for name, count in self.lines.items() if name.startswith(core)),
            "hidden imports": sum(each.hidden for imports in self.imports.values() for each in imports),
            "cycles": len(self.cycles()),
            "gerund names": sum(path.stem.endswith("ing") for path in self.modules.values()),
            "repeated file names": sum(count > 1 for count in names.values()),
            "modules with one importer": sum(len(self.importers[name]) == 1 for name in self.modules),
        }

    def folders(self) -> dict[str, tuple[int, int]]:
        """Files and lines of each folder of the layout; features are listed one by one."""
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for name, path in self.modules.items():
            parts = path.relative_to(SOURCE).parts[:-1]
            place = "/".join(parts[:2] if parts[:1] == ("features",) else parts[:1]) or "."
            found[place][0] += 1
            found[place][1] += self.lines[name]
        return {place: (files, lines) for place, (files, lines) in sorted(found.items())}


def names_type_checking(condition: ast.expr) -> bool:
    """Whether a condition names `TYPE_CHECKING`, alone or as `typing.TYPE_CHECKING`."""
    return any("TYPE_CHECKING" in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in ast.walk(condition))


def components(graph: dict[str, list[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for start, targets in graph.items():
        if start in index:
            continue
        work = [(start, iter(targets))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    found.append(stack[cut:])
                    on_stack -= set(stack[cut:])
                    del stack[cut:]
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(graph[following])))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return found


def figures_table(house: House) -> str:
    """The figures as Markdown; lines are rounded, so that not every edit changes the page."""
    rows = ["| figure | now | limit |", "|---|---|---|"]
    for name, value in house.figures().items():
        limit = f"{LIMITS[name]:,}" if name in LIMITS else f"{REPORTED[name]:,} (aim)" if name in REPORTED else ""
        shown = f"about {round(value, -2):,}" if name.endswith("lines") else f"{value:,}"
        rows.append(f"| {name} | {shown} | {limit} |")
    rows += ["", "| folder | files | lines |", "|---|---|---|"]
    rows += [
        f"| `{place}` | {files} | about {max(100, round(lines, -2)):,} |"
        for place, (files, lines) in house.folders().items()
    ]
    return "\n".join(rows)


def import_graph(house: House) -> str:
    """The imports between layers and features as a Mermaid flowchart; a thick arrow stands for many."""
    edges: Counter[tuple[str, str]] = Counter()
    for name, imports in house.imports.items():
        for each in imports:
            pair = place_of(name), place_of(each.target)
            if "" not in pair and pair[0] != pair[1] and not all(end.startswith("features.") for end in pair):
                edges[(pair[0].partition(".")[0], pair[1].partition(".")[0])] += 1
            elif "" not in pair and pair[0] != pair[1]:
                edges[pair] += 1
    lines = ["```mermaid", "flowchart TD"]
    for (importer, target), count in sorted(edges.items()):
        if importer != target:
            lines.append(f"    {importer} {'==>' if count > MANY_IMPORTS else '-->'} {target}")
    return "\n".join([*lines, "```"])


def place_of(module: str) -> str:
    """The layer of a module, or its feature; empty for the package itself and its public paths beside crib.py."""
    parts = module.split(".")[1:]
    if parts[:1] == ["features"] and len(parts) > 1:
        return ".".join(parts[:2])
    return parts[0] if parts and (len(parts) > 1 or parts[0] == "crib" or parts[0] in LAYERS) else ""


def main() -> int:
    """Print the figures; 1 if one of them is past its limit."""
    house = House.read()
    if "--page" in sys.argv[1:]:
        print(figures_table(house))
        return 0
    figures = house.figures()
    print(", ".join(f"{name} {value}" for name, value in figures.items()))
    past = [f"{name}: {figures[name]} is past {limit}" for name, limit in LIMITS.items() if figures[name] > limit]
    past += ["cycle: " + ", ".join(cycle) for cycle in house.cycles()]
    past += [
        f"{name} hides its import of {each.target} in a function"
        for name, imports in house.imports.items()
        for each in imports
        if each.hidden
    ]
    print("\n".join(past) or "the layout is within its limits")
    return bool(past)


if __name__ == "__main__":
    sys.exit(main())
