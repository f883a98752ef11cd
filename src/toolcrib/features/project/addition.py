"""Add files as tools to a project: read them into memory, load them in a temporary project, and only then write them."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import stat
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.core.catalog import CatalogSettings
from toolcrib.core.file_source import MAX_FILE_BYTES
from toolcrib.features.project.readiness import RUNS_IT
from toolcrib.infra.settings import FILE_NAME, PROJECT_SCRIPTS
from toolcrib.lib.file_access import file_access
from toolcrib.lib.protected_names import judge
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Script
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolcrib.infra.settings import Settings
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli.group import Opener

SCHEMA = "schema.json"
BUNDLE = "bundle.json"
MAX_FILES = 200
LEFT_OUT = frozenset({"__pycache__", "node_modules", ".git", ".DS_Store"})
# Marks a file with metadata, which belongs into the tree of scripts.
METADATA = re.compile(rb"^[^\n]{0,40}\b_{0,2}(?:tool[-_]type|executor[-_]id)_{0,2}\b", re.MULTILINE)
CATEGORY = re.compile(rb"\b_{0,2}category(?:_{0,2}[\"']?[ \t]*[:=]|[ \t])[ \t]*[\"']?([\w/-]{1,64})(?![\w/.-])")
# Where a file with metadata goes that names no category; the tree wants a sub-folder.
NO_CATEGORY = "general"


class Folders(Protocol):
    """Builds tool folders."""

    def build(self) -> object:
        """Check the tool folders and write their registries."""

    def check(self) -> tuple[list[str], list[str]]:
        """The problems and the warnings of the tool folders."""


class AddingCrib(ProjectCrib, Protocol):
    """What adding files uses of a crib."""

    @property
    def audit(self) -> Any:
        """The audit trail."""

    @property
    def registries(self) -> Folders:
        """The tool folders."""

    def missing(self, tool: Tool) -> list[str]:
        """What the tool still lacks here."""

    def warnings(self, tool: Tool) -> list[str]:
        """Warnings about the definition of a tool."""

    def ignored_files(self) -> list[str]:
        """Files in folders of tools that are not tools, each with the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """A file or a tool folder that was named: the bytes of its files, each by its path from the folder that holds it."""

    source: Path
    is_folder: bool
    contents: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """Something gathered, and its path in the project."""

    gathered: Gathered
    target: str

    @property
    def files(self) -> dict[str, bytes]:
        """The bytes by their paths in the project."""
        folder = PurePath(self.target).parent
        return {str(folder / name): code for name, code in self.gathered.contents.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """What a file became, and what is missing before it can be called."""

    name: str
    kind: str
    file: str
    parameters: tuple[str, ...]
    missing: tuple[str, ...]
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, object]:
        """The same as JSON."""
        return asdict(self)


def gather(source: Path) -> Gathered:
    """Read what was named; raises ToolError for what cannot be a tool, with the reason."""
    # The name that counts is the real one, also of `.` and of a path that ends in a slash.
    path = Path(os.path.normpath(Path.cwd() / source))
    try:
        if not path.is_dir():
            _refuse_protected(source, path.name)
            return Gathered(source=source, is_folder=False, contents={path.name: _read(path)})
        if not (path / SCHEMA).is_file():
            raise _refusal(source, _why_no_folder(source, path))
        files: dict[str, bytes] = {}
        for file in _walk(path):
            name = f"{path.name}/{file.relative_to(path)}"
            _refuse_protected(source / file.relative_to(path), name)
            # Only the user names files elsewhere: a link in an untrusted folder may lead to a private key.
            files[name] = _read(file, flags=os.O_NOFOLLOW)
        return Gathered(source=source, is_folder=True, contents=files)
    except OSError as problem:
        raise _refusal(source, f"{problem.strerror}; name a file that can be read") from None


def place(settings: Settings, found: Sequence[Gathered], *, replace: bool) -> list[Placed]:
    """Find the place of each; raises ToolError if something else is there already."""
    root = settings.root or Path()
    folder = next(iter(settings.table(CatalogSettings).folders), "")
    if not folder or Path(folder).is_absolute() or ".." in Path(folder).parts:
        message = "catalog.folders begins with no folder of this project; copy the file yourself, or change the setting"
        raise ToolError(Kind.VALIDATION, message)
    trees = {_stem(each): tree for each in found if (tree := _tree_of(each))}
    placed = []
    for each in found:
        # What a document describes lies beside it.
        parent = folder if each.is_folder else trees.get(_stem(each), folder)
        name = next(iter(each.contents)).partition("/")[0]
        placed.append(Placed(gathered=each, target=str(PurePath(parent, name))))
    targets = [each.target for each in placed]
    problems = [
        f"{target}: it is named twice; name it once" for target in sorted({t for t in targets if targets.count(t) > 1})
    ]
    if not replace:
        problems += [
            f"{each.target} is there already; to replace it write: crib add --replace {each.gathered.source}"
            for each in placed
            if os.path.lexists(root / each.target)
        ]
    if problems:
        raise ToolError(Kind.CONFLICT, "\n".join(problems))
    return placed


def try_out(opener: Opener[AddingCrib], crib: AddingCrib, placed: Sequence[Placed]) -> list[Added]:
    """Load the files in a temporary project as they would be loaded here; raises ToolError if one of them is not a tool."""
    with TemporaryDirectory(prefix="crib-add-") as name:
        trial_root = Path(name).resolve()
        folders = json.dumps(list(crib.settings.table(CatalogSettings).folders)[:1])
        settings = f"[catalog]\nfolders = {folders}\n[scripts]\nfolders = {json.dumps([PROJECT_SCRIPTS])}\n"
        (trial_root / FILE_NAME).write_text(settings, "utf-8")
        (trial_root / json.loads(folders)[0]).mkdir(parents=True)
        for each in placed:
            _write_all(trial_root, each)
        problems: list[str] = []
        if any(each.gathered.is_folder for each in placed):
            with opener.open_folder(trial_root, caller="local") as trial:
                problems += trial.registries.check()[0]
                if not problems:
                    trial.registries.build()
        with opener.open_folder(trial_root, caller="local") as trial:
            problems += [line for problem in trial.problems for line in problem.message.splitlines()]
            tools = [(each, tool) for each in placed for tool in trial.tools if _is_of(tool, trial_root / each.target)]
            used = {path for _, tool in tools for path in _files_of(tool)}
            idle = [each for each in placed if not any(each is other for other, _ in tools)]
            reasons = trial.ignored_files()
            for each in idle:
                path = str(trial_root / each.target)
                if path not in used and not _about(problems, each, trial_root):
                    said = _about(reasons, each, trial_root)
                    problems += said or [f"{path}: no tool was found in it; {_how_to_write(each.gathered.source)}"]
            # What is wrong with one tool of a file does not keep the others from being called.
            partial = [line for each in placed if each not in idle for line in _about(problems, each, trial_root)]
            problems = [line for line in problems if line not in partial]
            if problems:
                raise ToolError(Kind.VALIDATION, _as_named("\n".join(problems), trial_root, placed))
            added = [_added(crib, trial, each, tool, trial_root) for each, tool in tools]
            return [_with_partial(one, partial, trial_root, added) for one in added]


def _about(lines: Iterable[str], each: Placed, trial_root: Path) -> list[str]:
    """The lines that begin with the place of a file, from the root of its project or as a whole path."""
    return [line for line in lines if line.startswith((str(trial_root / each.target), each.target))]


def _with_partial(one: Added, partial: Sequence[str], trial_root: Path, added: Sequence[Added]) -> Added:
    """The first tool of a file, with what is wrong with its others."""
    is_first = next(other for other in added if other.file == one.file) is one
    lines = [line.replace(f"{trial_root}/", "") for line in partial]
    own = [line for line in lines if line.startswith(one.file)] if is_first else []
    return dataclasses.replace(one, warnings=(*one.warnings, *own))


def write(settings: Settings, placed: Iterable[Placed]) -> None:
    """Write the files, each as a whole."""
    for each in placed:
        _write_all(settings.root or Path(), each)


def _added(crib: AddingCrib, trial: AddingCrib, each: Placed, tool: Tool, trial_root: Path) -> Added:
    # Asked for where it will lie: a .venv of the project is found from there.
    missing = crib.missing(_moved(tool, trial_root, crib.settings.root or Path()))
    # Its file is not there yet, so what would run it is known where it was tried.
    missing += [line for line in trial.missing(tool) if line.startswith(RUNS_IT) and line not in missing]
    if each.gathered.is_folder:
        missing = ["to be built; run: crib build", *missing]
    properties = tool.parameters.get("properties")
    return Added(
        name=tool.name,
        kind=tool.kind,
        file=each.target,
        parameters=tuple(properties) if isinstance(properties, dict) else (),
        missing=tuple(missing),
        warnings=(*(line.replace(f"{trial_root}/", "") for line in trial.warnings(tool)), *_opened(tool)),
    )


def _opened(tool: Tool) -> Iterator[str]:
    """What the tool must require if the files that it opens are those of the project."""
    run = tool.run.script if isinstance(tool.run, Chained) else tool.run
    needed = file_access(run.code) if isinstance(run, Script) and run.language == "python" else ()
    if missing := " and ".join(name for name in needed if name not in tool.requires):
        yield f"{tool.name} opens files; those of the project need {missing}: list it in its requires"


def _moved(tool: Tool, trial_root: Path, root: Path) -> Tool:
    """The tool with its file in the project."""
    run = tool.run
    if isinstance(run, Chained):
        script = run.script
        moved = script if script is None else dataclasses.replace(script, path=_there(script.path, trial_root, root))
        return dataclasses.replace(
            tool, run=dataclasses.replace(run, script=moved, folder=_there(run.folder, trial_root, root))
        )
    return (
        dataclasses.replace(tool, run=dataclasses.replace(run, path=_there(run.path, trial_root, root)))
        if isinstance(run, Script)
        else tool
    )


def _there(path: Path, trial_root: Path, root: Path) -> Path:
    return root / path.relative_to(trial_root) if path.is_relative_to(trial_root) else path


def _write_all(root: Path, each: Placed) -> None:
    for name, code in each.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link that is there is replaced, never followed; and no reader sees half a file.
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        with part.open("xb") as file:
            file.write(code)
        part.replace(path)


def _is_of(tool: Tool, target: Path) -> bool:
    return tool.origin is not None and Path(tool.origin.place).is_relative_to(target)


def _files_of(tool: Tool) -> Iterator[str]:
    """The files that a tool runs besides the one that describes it."""
    if tool.script is not None:
        yield str(tool.script.path)
    if isinstance(tool.run, Chained):
        words = re.findall(r"[\w.-]+", json.dumps(tool.run.config, default=str))
        yield from (str(tool.run.folder / word) for word in words)


def _as_named(text: str, trial_root: Path, placed: Sequence[Placed]) -> str:
    """A message that names the files as the user did, and not where they were tried."""
    for each in placed:
        text = text.replace(str(trial_root / each.target), str(each.gathered.source))
        named = str(each.gathered.source).replace("\\", r"\\")
        text = re.sub(rf"^{re.escape(each.target)}(?=[:/])", named, text, flags=re.MULTILINE)
    return text.replace(f"{trial_root}/", "")


def _how_to_write(source: Path) -> str:
    if source.suffix == ".py":
        return f"write a public function, best named {source.stem}, with hints and a docstring"
    return "describe it in a .yaml file beside it and name both, or write it as docs/write-a-tool.md shows"


def _tree_of(each: Gathered) -> str:
    """The folder of the tree of scripts that a file with metadata belongs into; empty for any other."""
    code = next(iter(each.contents.values()))
    if each.is_folder or METADATA.search(code) is None:
        return ""
    category = CATEGORY.search(code)
    words = [] if category is None else [word for word in category[1].decode().split("/") if word]
    return str(PurePath(PROJECT_SCRIPTS, *(words or [NO_CATEGORY])))


def _stem(each: Gathered) -> str:
    return PurePath(next(iter(each.contents))).stem


def _why_no_folder(source: Path, path: Path) -> str:
    if (path / BUNDLE).is_file():
        return f"it is the folder of a bundle; store it with: crib bundle load {source}"
    return f"it is not a tool folder, because {SCHEMA} is missing; name its files one by one, or write one with: crib new NAME"


def _walk(folder: Path) -> list[Path]:
    """The files of a tool folder; links are not followed."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        found += [Path(parent, name) for name in sorted(names) if name not in LEFT_OUT]
        if len(found) > MAX_FILES:
            raise _refusal(
                folder, f"it holds more than {MAX_FILES} files; add the tool alone, without what it was built from"
            )
    return found


def _refuse_protected(source: Path, name: str) -> None:
    """Refuse what no tool may write either, because it is a secret or the host would run it unasked."""
    if judge(name):
        reason = "it is a secret, or something that git, a shell or an editor runs by itself, and no part of a tool"
        raise _refusal(source, f"{reason}; remove or rename it")


def _read(path: Path, *, flags: int = 0) -> bytes:
    """The bytes of a regular file; never blocks, even on a device or a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except OSError as problem:
        if problem.errno != errno.ELOOP:
            raise
        raise _refusal(path, "it is a symbolic link; put the file itself there") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _refusal(path, "it is not a regular file; name a file or a tool folder")
        code = file.read(MAX_FILE_BYTES + 1)
    if len(code) > MAX_FILE_BYTES:
        raise _refusal(
            path, f"it is larger than {MAX_FILE_BYTES} bytes, the most that a file of a tool may have; split it"
        )
    return code


def _refusal(source: Path, reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"{source}: {reason}")
