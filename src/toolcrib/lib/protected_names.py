"""The protected names in a workspace: one table for the rules, the path checks, the sandbox and `crib doctor`.

closed   secrets: tools neither read nor write them
fixed    files by which git starts programs: readable, never writable
asked    files that the host runs automatically: readable; a person may confirm a write

A name is protected at every depth, whether it exists or not, in every spelling that some file system treats as equal.
Every launcher of the sandbox imports this module, so it imports nothing and compiles no regular expression.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would take a fifth of the launcher's start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

OPEN, CLOSED, FIXED, ASKED = "", "closed", "fixed", "asked"
# First part of a protected path that applies at every depth.
EVERYWHERE = "**"

# Secrets, as files or as folders with everything below them.
SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".toolcrib"})
SECRET_NAMES = frozenset({".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"})
SECRET_BEGINNINGS = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
SECRET_PAIRS = frozenset({(".aws", "config"), (".kube", "config"), (".docker", "config.json")})
VARIABLES = ".env"
# These apply to files only: a package may be called `secrets`.
SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdbx")
SECRET_WORDS = ("credentials", "secret")
# Endings of source code and documentation, and of templates, which do not contain the secret itself.
SOURCES = frozenset(
    (
        *("py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "svelte", "go", "rs", "java", "kt", "kts"),
        *("scala", "c", "h", "cc", "cpp", "hpp", "cs", "fs", "rb", "php", "swift", "m", "ex", "exs", "erl", "hs"),
        *("ml", "lua", "pl", "proto", "md", "rst", "adoc", "html", "css"),
    )
)
TEMPLATES = frozenset({"example", "sample", "template", "tmpl", "tpl", "dist"})

# The folder of a repository, and its 8.3 short name.
REPOSITORIES = frozenset({".git", "git~1"})
# Files that make git start programs or redirect it to another folder that does; at every depth, because submodules and
# linked worktrees have their own.
REPOSITORY_CODE = frozenset(
    (
        *("hooks", "config", "config.lock", "config.worktree", "config.worktree.lock"),
        *("commondir", "gitdir", "rebase-merge", "opts"),
    )
)
# Options of a sequence of picks, in a folder below the repository; a merge strategy in it may be a program in the working tree.
SEQUENCER_OPTIONS = "opts"
# In these folders a branch may be called `config` or `secret`.
REPOSITORY_DATA = frozenset({"refs", "logs"})
# Without this file, git does not treat a folder as a repository.
REPOSITORY_MARK = "head"
# Nor without one of these, of which the first is a folder and the second a file that names another one.
REPOSITORY_STORES = frozenset({"objects", "commondir"})
BRANCHES = "heads"

# Hooks of git; editors and coding agents, whose settings name commands that they run by themselves.
HOST_CODE_FOLDERS = frozenset(
    {".husky", ".githooks", ".lefthook", ".vscode", ".idea", ".devcontainer", ".claude", ".cursor"}
)
HOST_CODE_FILES = frozenset(
    (
        *(".envrc", "conftest.py", "sitecustomize.py", "usercustomize.py", ".mcp.json"),
        *(".pre-commit-config.yaml", ".overcommit.yml"),
    )
)
# Commands that hooks of git run, in files with several endings.
HOST_CODE_BEGINNINGS = ("lefthook.", "lefthook-local.", ".lefthook.", ".lefthook-local.", ".lintstagedrc")
HOST_CODE_ENDINGS = (".pth",)

# What `crib doctor` and the documentation show.
TABLE = {
    CLOSED: (
        *(f"{VARIABLES}*", *sorted(SECRET_FOLDERS), *sorted(SECRET_NAMES)),
        *(f"{beginning}*" for beginning in SECRET_BEGINNINGS),
        ".*_history",
        *sorted("/".join(pair) for pair in SECRET_PAIRS),
        *(f"*{ending}" for ending in SECRET_ENDINGS),
        *(f"*{word}*" for word in SECRET_WORDS),
    ),
    FIXED: (".git", *(f".git/**/{name}" for name in sorted(REPOSITORY_CODE)), "HEAD (which makes a bare repository)"),
    ASKED: (
        *sorted(HOST_CODE_FOLDERS),
        *sorted(HOST_CODE_FILES),
        *(f"{beginning}*" for beginning in HOST_CODE_BEGINNINGS),
        *(f"*{ending}" for ending in HOST_CODE_ENDINGS),
    ),
}

_SPECIAL_PIECES = frozenset("*?[")
# Code points that case-insensitive file systems ignore in names.
_IGNORED = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)


def judge(
    path: str,
    *,
    opened: Iterable[str] = (),
    hooks: Iterable[str] = (),
    is_folder: bool = False,
    is_new_folder: bool = False,
    is_repository: Callable[[str], bool] = lambda _: False,
) -> str:
    """The protection of a path below the workspace: closed, fixed, asked, or open (empty).

    `opened` are the operator's exceptions, `hooks` further paths of programs and configuration of git; one that ends in a slash
    is a folder, with everything below it. A parent folder of a hook may not be moved or replaced by a link; with
    `is_new_folder` the path is an empty folder, which may be created and removed.
    `is_repository` says whether a folder below the workspace has a HEAD.
    """
    names = [name for name in path.split("/") if name not in {"", "."}]
    parts = [fold(name) for name in names]
    access = _judge(names, parts, is_folder, is_repository) if parts else OPEN
    if access in {OPEN, ASKED} and any(_leads(parts, path, is_new_folder) for path in hooks):
        access = FIXED
    return OPEN if access and is_opened(parts, opened) else access


def is_in_repository(path: str, is_repository: Callable[[str], bool]) -> bool:
    """Whether a path below the workspace lies in a repository's own folder, bare or not."""
    names = [name for name in path.split("/") if name not in {"", "."}][:-1]
    if any(fold(name) in REPOSITORIES for name in names):
        return True
    return any(is_repository("/".join(names[:depth])) for depth in range(len(names) + 1))


def is_opened(parts: Sequence[str], opened: Iterable[str]) -> bool:
    """Whether the operator opened this path or a parent folder of it.

    A pattern without a slash matches a name at every depth, one with a slash a path from the workspace; `*` and `?` match
    parts of one name.
    """
    for pattern in opened:
        wanted = [fold(name) for name in pattern.split("/") if name and name != "."]
        if len(wanted) == 1 and "/" not in pattern.strip("/"):
            if any(_fits(part, wanted[0]) for part in parts):
                return True
        elif wanted and len(wanted) <= len(parts) and all(map(_fits, parts, wanted)):
            return True
    return False


def is_secret(part: str) -> bool:
    """Whether a folded name, of a file or of a folder, is certainly that of a secret."""
    if (
        part.startswith(VARIABLES) and not part[len(VARIABLES) :][:1].isalpha()
    ):  # `.envrc` and `.environment` are different files
        return not _ends_in(part, TEMPLATES)
    return (
        part in SECRET_FOLDERS
        or part in SECRET_NAMES
        or part.startswith(SECRET_BEGINNINGS)
        or (part.startswith(".") and part.endswith("_history"))
    )


def has_secret_pair(parts: Sequence[str]) -> bool:
    """Whether two consecutive folded names of a path are those of a secret, such as `.aws/config`."""
    return any((folder, name) in SECRET_PAIRS for folder, name in zip(parts, parts[1:], strict=False))  # noqa: RUF007 - see above


def is_secret_file(part: str) -> bool:
    """Whether a folded name is probably that of a file with a secret, and not of source code or a template."""
    if not (part.endswith(SECRET_ENDINGS) or any(word in part for word in SECRET_WORDS)):
        return False
    return part not in SECRET_ENDINGS and not _ends_in(part, SOURCES) and not _ends_in(part, TEMPLATES)


def is_source(part: str) -> bool:
    """Whether it is the name of a source or documentation file."""
    return _ends_in(part.lower(), SOURCES)


def fold(name: str) -> str:
    """Normalise a name, so that all spellings that some file system treats as equal are the same."""
    if name.isascii():
        return name.lower().rstrip(" .")
    import unicodedata

    plain = unicodedata.normalize("NFKD", name)
    bare = "".join(letter for letter in plain if not any(first <= ord(letter) <= last for first, last in _IGNORED))
    return unicodedata.normalize("NFKD", bare.casefold()).rstrip(" .")


def _judge(
    names: Sequence[str],
    parts: Sequence[str],
    is_folder: bool,  # noqa: FBT001 - private, and a property of the path
    is_repository: Callable[[str], bool],
) -> str:
    last = parts[-1]
    if _is_repository_data(parts):
        return FIXED if last in REPOSITORIES or _makes_repository(parts) else OPEN
    if any(map(is_secret, parts)) or has_secret_pair(parts) or (not is_folder and is_secret_file(last)):
        return CLOSED
    if _starts_programs(names, parts, is_repository):
        return FIXED
    if last == REPOSITORY_MARK and not is_folder and REPOSITORIES.isdisjoint(parts):
        return OPEN if is_repository("/".join(names[:-1])) else FIXED
    if not HOST_CODE_FOLDERS.isdisjoint(parts) or last in HOST_CODE_FILES:
        return ASKED
    return ASKED if last.startswith(HOST_CODE_BEGINNINGS) or last.endswith(HOST_CODE_ENDINGS) else OPEN


def _starts_programs(names: Sequence[str], parts: Sequence[str], is_repository: Callable[[str], bool]) -> bool:
    is_inside = False
    for place, part in enumerate(parts):
        if part in REPOSITORIES:
            inside = parts[place + 1 :]
            if not inside or not REPOSITORY_CODE.isdisjoint(inside):
                return True
            is_inside = True
        elif not is_inside and part in REPOSITORY_CODE:
            depths = (place, place - 1) if part == SEQUENCER_OPTIONS else (place,)
            if any(is_repository("/".join(names[:depth])) for depth in depths if depth >= 0):
                return True
    return False


def _is_repository_data(parts: Sequence[str]) -> bool:
    first = _find_repository(parts)
    return len(parts) > first + 1 and parts[first + 1] in REPOSITORY_DATA


def _makes_repository(parts: Sequence[str]) -> bool:
    """Whether a path among the refs could make a repository there, with settings of its own, which a link could lead to.

    A branch may be called `objects`, but not HEAD; a remote has a HEAD, and nothing else is called `objects`.
    """
    inside = parts[_find_repository(parts) + 2 :]
    return REPOSITORY_MARK in inside if BRANCHES in inside else not REPOSITORY_STORES.isdisjoint(inside)


def _find_repository(parts: Sequence[str]) -> int:
    return next((place for place, part in enumerate(parts) if part in REPOSITORIES), len(parts))


def _leads(parts: Sequence[str], path: str, is_new_folder: bool) -> bool:  # noqa: FBT001 - see above
    """Whether the names are those of the protected path, of a path below a protected folder, or of an existing parent folder."""
    wanted = [fold(name) for name in path.split("/") if name]
    is_with_content, starts = path.endswith("/"), range(1)
    if wanted[:1] == [EVERYWHERE]:
        wanted, starts = wanted[1:], range(len(parts))
    for start in starts:
        rest = parts[start:]
        if len(rest) > len(wanted):
            is_open = not is_with_content
        else:  # an empty folder is not a program
            is_open = is_new_folder and not (is_with_content and len(rest) == len(wanted))
        if not is_open and all(part == name for part, name in zip(rest, wanted, strict=False)):
            return True
    return False


def _ends_in(part: str, endings: frozenset[str]) -> bool:
    _, dot, ending = part.rpartition(".")
    return bool(dot) and ending in endings


def _fits(part: str, pattern: str) -> bool:
    if _SPECIAL_PIECES.isdisjoint(pattern):
        return part == pattern
    from fnmatch import fnmatchcase

    return fnmatchcase(part, pattern)
