"""Tables of programs: those that only read, with the options that make them do more, and those that run other programs.

To add a program that only reads, add a row to `READS`: `PLAIN` if none of its arguments can make it write a file or start a
program, else a `WritingArguments` that names the arguments that do. When in doubt, leave it out: a program in no table needs
confirmation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.shell import GLOB, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.lib.shell import Command, Word


@dataclass(frozen=True, kw_only=True, slots=True)
class WritingArguments:
    """The arguments that make a program do more than read.

    `letters` are such short options, `options` long ones, and `words` any other such words. `operands` is how many operands it
    may have at most, `code` a pattern that no argument may contain, and `program` one that its first operand must match.
    With `only`, the first argument must be one of these options; with `verbs`, it must be one of these subcommands, and the
    rest is judged by the row of that subcommand.
    """

    letters: str = ""
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    operands: int | None = None
    code: re.Pattern[str] | None = None
    program: re.Pattern[str] | None = None
    only: tuple[str, ...] = ()
    verbs: Mapping[str, WritingArguments] = field(default_factory=dict)


PLAIN = WritingArguments()
# Awk code that runs programs, writes files or reads further files.
AWK_CODE = re.compile(r"system|getline|close|[|>@]")
AWK_OPTIONS = (
    *("--file", "--include", "--load", "--exec", "--source"),
    *("--dump-variables", "--pretty-print", "--profile", "--debug"),
)
# One command of sed that prints, deletes or replaces; `e` runs programs, `w` writes files.
SED_PROGRAM = re.compile(
    r"(?:[\d$,+~! ]|/(?:\\.|[^/\\])*/)*(?:[pdq=lnN]|s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1(?:\\.|(?!\1)[^\\])*\1[gpiI\d]*)?"
)
# An operand of digits sets the clock.
CLOCK = re.compile(r"^\d{8,12}(?:\.\d\d)?$")
FIND_ACTION = re.compile(r"-(?:delete|exec|execdir|ok|okdir|fls|fprint|fprint0|fprintf)")
PRINTS_COMMITS = WritingArguments(
    letters="oO", options=("--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager")
)
# By these man runs other programs, directly or through a configuration file or an output device.
MAN_OPTIONS = (
    *("--pager", "--html", "--gxditview", "--preprocessor"),
    *("--config-file", "--troff", "--troff-device", "--prompt"),
)
BRANCH_OPTIONS = (
    *("--delete", "--move", "--copy", "--edit-description"),
    *("--set-upstream-to", "--unset-upstream"),
)
GIT_VERBS: dict[str, WritingArguments] = {
    **dict.fromkeys(("status", "rev-parse", "ls-files", "ls-tree", "merge-base", "name-rev", "describe"), PLAIN),
    **dict.fromkeys(("rev-list", "check-ignore", "count-objects", "--version", "version"), PLAIN),
    **dict.fromkeys(("log", "show", "diff", "shortlog", "blame", "whatchanged", "grep", "cat-file"), PRINTS_COMMITS),
    "branch": WritingArguments(operands=0, letters="dDmMcCfut", options=BRANCH_OPTIONS),
    "remote": WritingArguments(operands=0),
    "stash": WritingArguments(verbs={"list": PRINTS_COMMITS}),
    "tag": WritingArguments(operands=0, letters="adsufm", options=("--delete", "--annotate", "--sign")),
}

READS: dict[str, WritingArguments] = {
    # The shell itself
    **dict.fromkeys((":", "true", "false", "cd", "pushd", "popd", "dirs", "pwd", "exit", "return", "break"), PLAIN),
    **dict.fromkeys(("continue", "shift", "wait", "times", "type", "umask", "set"), PLAIN),
    **dict.fromkeys(("export", "local", "readonly", "unset", "read", "getopts", "sleep"), PLAIN),
    **dict.fromkeys(
        ("test", "["), WritingArguments(words=("-v", "-R"))
    ),  # they evaluate the index of a variable, which may run commands
    "command": WritingArguments(only=("-v", "-V")),
    "jobs": WritingArguments(operands=0, letters="x"),
    "history": WritingArguments(operands=1, letters="acdnprsw"),
    # Text
    **dict.fromkeys(
        ("echo", "printf", "cat", "tac", "head", "tail", "wc", "nl", "cut", "tr", "rev", "fold", "fmt"), PLAIN
    ),
    **dict.fromkeys(("paste", "join", "comm", "cmp", "expand", "unexpand", "column", "seq", "yes", "expr"), PLAIN),
    **dict.fromkeys(("grep", "egrep", "fgrep", "strings", "od", "hexdump", "base64", "base32", "jq"), PLAIN),
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "cksum", "b2sum"), PLAIN),
    "awk": WritingArguments(letters="fileEdopDW", options=AWK_OPTIONS, code=AWK_CODE),
    "diff": PLAIN,
    "rg": WritingArguments(letters="z", options=("--pre", "--hostname-bin", "--search-zip")),
    "sed": WritingArguments(
        letters="efils",
        options=("--expression", "--file", "--in-place", "--line-length", "--separate"),
        program=SED_PROGRAM,
    ),
    "sort": WritingArguments(
        letters="oT", options=("--output", "--compress-program", "--temporary-directory", "--files0-from")
    ),
    "uniq": WritingArguments(operands=1),
    "xxd": WritingArguments(letters="r", options=("-revert",), operands=1),
    # Files
    **dict.fromkeys(("ls", "dir", "stat", "du", "df", "basename", "dirname", "realpath", "readlink"), PLAIN),
    **dict.fromkeys(("mkdir", "touch"), PLAIN),  # they create empty files and folders, and change no content
    "file": WritingArguments(letters="C", options=("--compile",)),
    "find": WritingArguments(code=FIND_ACTION),
    "tree": WritingArguments(letters="oR", options=("--output",)),
    # The machine
    **dict.fromkeys(("id", "whoami", "groups", "uname", "arch", "nproc", "uptime", "free", "ps", "printenv"), PLAIN),
    **dict.fromkeys(("which", "tty", "locale", "cal", "who", "w", "lscpu", "lsblk"), PLAIN),
    "crontab": WritingArguments(only=("-l",), operands=0),
    "date": WritingArguments(letters="s", options=("--set",), code=CLOCK),
    "env": WritingArguments(operands=0, letters="S", options=("--split-string",)),
    "hostname": WritingArguments(operands=0, letters="bF", options=("--boot", "--file")),
    "man": WritingArguments(letters="PHXCTtpr", options=MAN_OPTIONS),
    "mount": WritingArguments(
        operands=0, letters="aoBMR", options=("--all", "--bind", "--move", "--rbind", "--options")
    ),
    # Version control; a global option, such as -c or --exec-path, can name a program
    "git": WritingArguments(verbs={**GIT_VERBS, "--no-pager": WritingArguments(verbs=GIT_VERBS)}),
}
READS |= {"mawk": READS["awk"], "gawk": READS["awk"], "nawk": READS["awk"]}

SYSTEM_FOLDERS = frozenset({"", "/bin", "/usr/bin"})
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish"})
# Programs that run their arguments as a command, or one of them as shell code.
WRAPPERS = SHELLS | frozenset(
    (
        *("!", ".", "alias", "at", "batch", "builtin", "busybox", "chroot", "chrt", "command", "coproc", "doas", "env"),
        *(
            "eval",
            "exec",
            "fakeroot",
            "flock",
            "ionice",
            "jobs",
            "ltrace",
            "nice",
            "nohup",
            "nsenter",
            "parallel",
            "pkexec",
        ),
        *("rlwrap", "runuser", "script", "setarch", "setpriv", "setsid", "source", "stdbuf", "strace", "su", "sudo"),
        *("systemd-run", "taskset", "time", "timeout", "toybox", "trap", "unbuffer", "unshare", "valgrind", "watch"),
        *("xargs", "xvfb-run"),
    )
)
CODE_AS_WORDS = frozenset({"eval", "watch", "parallel"})
INTERPRETERS = frozenset(
    (
        *("bun", "deno", "expect", "irb", "julia", "lua", "luajit", "node", "nodejs", "octave", "osascript", "perl"),
        *("php", "pwsh", "python", "pypy", "r", "rscript", "ruby", "tclsh", "tsx"),
    )
)
# Programs that run a program named in an argument or a file, or that decide which programs run later.
RUNS_PROGRAMS = frozenset(
    (
        *(
            "bunx",
            "chsh",
            "dc",
            "docker",
            "ed",
            "emacs",
            "ex",
            "gdb",
            "insmod",
            "m4",
            "make",
            "modprobe",
            "mysql",
            "npx",
        ),
        *(
            "pip",
            "pipx",
            "podman",
            "psql",
            "rsh",
            "rsync",
            "scp",
            "screen",
            "sftp",
            "sqlite",
            "ssh",
            "swapon",
            "sysctl",
        ),
        *("systemctl", "tar", "tmux", "umount", "uvx", "vi", "vim", "visudo", "zip"),
    )
)
# Shell built-ins that evaluate an argument as code or as the name of a variable.
SHELL_CODE = frozenset({"let", "mapfile", "read", "readarray", "getopts", "unset", "wait"})
DECLARES = frozenset({"declare", "export", "local", "readonly", "typeset"})
SETS_VARIABLES = frozenset({"read", "mapfile", "readarray", "getopts", "printf", "unset"})
# Variables that can make the shell, or a program that only reads, run another program.
STEERING = re.compile(
    r"PATH|LD_\w+|DYLD_\w+|BASH_\w+|ENV|IFS|PS4|PROMPT_COMMAND|SHELL|SHELLOPTS|BASHOPTS|GCONV_PATH|NLSPATH|TERMINFO"
    r"|GIT_\w+|SSH_\w+|\w*PAGER|MAN\w+|GROFF_\w+|GREP\w*|\w*EDITOR|VISUAL|BROWSER|LESS\w*|\w*_OPTIONS|\w*OPTS|RIPGREP_CONFIG_PATH|JQ_\w+"
    r"|AWK\w*|PERL\w*|PYTHON\w*|RUBY\w*|NODE_\w+|POSIXLY_CORRECT|TMPDIR|HOME|XDG_\w+"
)


def is_listed(command: Command) -> bool:
    """Whether it is a program of `READS`, by its bare name or in a folder of system programs."""
    folder, _, name = command.words[0].text.rpartition("/") if command.words else ("", "", "")
    return folder in SYSTEM_FOLDERS and name in READS


def does_more(command: Command) -> str:
    """The reason why a listed program does more than read; empty if it only reads."""
    return _does_more(READS[command.name], command.arguments)


def _does_more(row: WritingArguments, words: Sequence[Word]) -> str:
    if row.verbs:
        verb = words[0].text if words else ""
        if verb not in row.verbs or not words[0].certain:
            return f"is called with {verb[:40]!r}" if verb else "is called without a verb"
        return _does_more(row.verbs[verb], words[1:])
    if row.only:
        named = bool(words) and words[0].text in row.only
        return "" if named and (row.operands is None or len(words) == 1) else f"is called without {row.only[0]}"
    return next(_findings(row, words), "") if row != PLAIN else ""


def _findings(row: WritingArguments, words: Sequence[Word]) -> Iterator[str]:
    options, operands = split_words(words)
    if row.letters or row.options:
        for word in options:
            if not word.certain:
                yield f"is given a word that may be an option ({word.text[:40]!r}; write ./ or -- before it)"
            elif _is_option(word.text, row):
                yield f"is called with {word.text[:40]}"
    yield from (f"is called with {word.text}" for word in words if word.text in row.words)
    if row.operands is not None:
        several = [
            word for word in words if not word.certain
        ]  # a pattern or a variable may expand to any number of words
        yield from (f"is given {word.text[:40]!r}" for word in (*several, *operands[row.operands :]))
    if row.code is not None and any(_may_hold(row.code, word) for word in words):
        yield "is given words that may write or run something"
    if row.program is not None and any(not _is_exactly(row.program, word) for word in operands[:1]):
        yield "is given code that may write or run something"


def _may_hold(code: re.Pattern[str], word: Word) -> bool:
    return any(code.search(outline) or outline.startswith((UNKNOWN, GLOB)) for outline in word.outlines)


def _is_exactly(program: re.Pattern[str], word: Word) -> bool:
    return word.certain and program.fullmatch(word.text) is not None


def split_words(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """The words that are or may be options, and the operands; as GNU programs do, options are accepted anywhere before `--`."""
    texts = [word.text for word in words]
    end = texts.index("--") if "--" in texts else len(texts)
    options = [
        word for word in words[:end] if any(outline.startswith(("-", UNKNOWN, GLOB)) for outline in word.outlines)
    ]
    operands = [word for word in words[:end] if word not in options or word.text == "-"]
    return [word for word in options if word.text != "-"], [*operands, *words[end + 1 :]]


def _is_option(text: str, row: WritingArguments) -> bool:
    """Whether the word contains an option of the row: in a group of letters, or as a name in full, abbreviated or with a value."""
    name = text.partition("=")[0]
    if name in row.options:
        return True
    if text.startswith("--"):
        return any(option.startswith(name) for option in row.options if option.startswith("--"))
    return any(letter in row.letters for letter in text[1:])
