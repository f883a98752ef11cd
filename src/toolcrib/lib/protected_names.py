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
SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".secrets", ".toolcrib"})
SECRET_NAMES = frozenset(
    {".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".vault-token", ".dockercfg"}
)
SECRET_BEGINNINGS = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
SECRET_PAIRS = frozenset({(".aws", "config"), (".kube", "config"), (".docker", "config.json")})
VARIABLES = ".env"
# These apply to files only: a package may be called `secrets`.
SECRET_ENDINGS = (".pem", ".key", ".p8", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdbx")
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

# The folder of a repository, also under its 8.3 short name, and those of Mercurial and Jujutsu, whose settings name programs
# too. All of it is closed, because git trusts every file in it: an index names the files that `git restore` writes, hooks among
# them, and git writes messages through links.
REPOSITORIES = frozenset({".git", "git~1", ".hg", ".jj"})
# Git treats a folder of any name as a repository if it has this file, and a folder or file of the second kind.
REPOSITORY_MARK = "head"
REPOSITORY_STORES = frozenset({"objects", "commondir"})

# Hooks of git; editors and coding agents, whose settings name commands that they run by themselves.
HOST_CODE_FOLDERS = frozenset(
    {".husky", ".githooks", ".lefthook", ".vscode", ".idea", ".devcontainer", ".claude", ".cursor"}
)
HOST_CODE_VARIABLES = ".envrc"
HOST_CODE_FILES = frozenset(
    (
        *(HOST_CODE_VARIABLES, "conftest.py", "sitecustomize.py", "usercustomize.py", ".mcp.json"),
        *(".pre-commit-config.yaml", ".overcommit.yml"),
    )
)
# Commands that hooks of git run, in files with several endings.
HOST_CODE_BEGINNINGS = (
    *("lefthook.", "lefthook-local.", ".lefthook.", ".lefthook-local.", ".lintstagedrc", "lint-staged.config."),
    ".huskyrc",
)
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
    FIXED: (".git", ".hg", ".jj", "bare repositories", "HEAD (which makes a bare repository)"),
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
    is_repository: Callable[[str, str], bool] = lambda _folder, _name: False,
) -> str:
    """The protection of a path below the workspace: closed, fixed, asked, or open (empty).

    `opened` are the operator's exceptions, `hooks` further paths of programs and configuration of git; one that ends in a slash
    is a folder, with everything below it. A parent folder of a hook may not be moved or replaced by a link; with
    `is_new_folder` the path is an empty folder, which may be created and removed.
    `is_repository` says whether a folder below the workspace is a repository, or would be with an entry of this name.
    """
    names = [name for name in path.split("/") if name not in {"", "."}]
    parts = [fold(name) for name in names]
    access = _judge(names, parts, is_folder, is_repository) if parts else OPEN
    if access in {OPEN, ASKED} and any(_leads(parts, path, is_new_folder) for path in hooks):
        access = FIXED
    return OPEN if access and is_opened(parts, opened) else access


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
    if part.startswith(VARIABLES) and not part.startswith(HOST_CODE_VARIABLES):
        # `.env.py` has variables in it, `.environment.py` is a program.
        is_program = part[len(VARIABLES) :][:1].isalpha() and _ends_in(part, SOURCES)
        return not (is_program or _ends_in(part, TEMPLATES))
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
    is_repository: Callable[[str, str], bool],
) -> str:
    last = parts[-1]
    if any(map(is_secret, parts)) or has_secret_pair(parts) or (not is_folder and is_secret_file(last)):
        return CLOSED
    if not REPOSITORIES.isdisjoint(parts) or (last == REPOSITORY_MARK and not is_folder):
        return FIXED
    if any(is_repository("/".join(names[:depth]), part) for depth, part in enumerate(parts)):
        return FIXED
    if not HOST_CODE_FOLDERS.isdisjoint(parts) or last in HOST_CODE_FILES:
        return ASKED
    return ASKED if last.startswith(HOST_CODE_BEGINNINGS) or last.endswith(HOST_CODE_ENDINGS) else OPEN


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
