"""Tables of programs: those that only read, with the options that make them do more, and those that run other programs.

To add a program that only reads, add a row to `READS`: `PLAIN` if none of its arguments can make it write a file or start a
program, else a `WritingArguments` that names the arguments that do. When in doubt, leave it out: a program in no table needs
confirmation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.shell import GLOB, UNKNOWN, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.lib.shell import Command, Word


@dataclass(frozen=True, kw_only=True, slots=True)
class WritingArguments:
    """The arguments that make a program do more than read.

    `letters` are such short options, `options` long ones, and `words` such words of an expression. `operands` is how many operands
    it may have at most, `start` a pattern that no argument may begin with, and `program` one that its first operand must match;
    the next word may be the value of an option that ends with one of the letters in `values`. After each option in `valued` the
    next word is its value, and the program if there is one. If an option of `lists` is the first argument, operands are patterns.
    With `options_first`, every word after the first operand is an operand too.
    With `only`, the first argument must be one of these options; with `verbs`, it must be one of these subcommands, and the
    rest is judged by the row of that subcommand.
    """

    letters: str = ""
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    operands: int | None = None
    start: re.Pattern[str] | None = None
    program: re.Pattern[str] | None = None
    values: str = ""
    valued: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    options_first: bool = False
    only: tuple[str, ...] = ()
    verbs: Mapping[str, WritingArguments] = field(default_factory=dict)


PLAIN = WritingArguments()
# Awk code that runs no programs, writes no files and reads no further files: for that, `>` and `|` stand behind `print`.
AWK_ACTION = r"system|getline|close|ARG[CV]|@|\\\n"
AWK_PROGRAM = re.compile(rf"(?:(?!{AWK_ACTION}|print).)*(?:print(?:(?!{AWK_ACTION})[^|>])*)?", re.DOTALL)
AWK_OPTIONS = (
    *("--assign", "--field-separator"),  # they hide where the program begins
    *("--file", "--include", "--load", "--exec", "--source"),
    *("--dump-variables", "--pretty-print", "--profile", "--debug"),
)


def _sed_regex(mark: str) -> str:
    """A regular expression of sed up to its delimiter; sed programs differ in whether one in brackets ends it."""
    brackets = rf"\[(?!\^?\])(?:\[:\w+:\]|\\[^\]]|(?!{mark})[^\[\]\\])*\]"
    return rf"(?:\\.|{brackets}|(?!{mark})[^\[\\])*"


MARK = r"\1"
# Commands of sed that print, delete or replace; `e` runs programs, `w` writes files.
SED_PROGRAM = re.compile(
    rf"(?:(?:[\d$,+~! ]|/{_sed_regex('/')}/)*"
    rf"(?:[pdq=lnN]|s([/|,#:@!%+~]){_sed_regex(MARK)}\1(?:\\.|(?!\1)[^\\])*\1[gpiI\d]*)?(?:;|\Z))*"
)
# An operand of digits sets the clock, as --set does.
CLOCK = re.compile(r"\d{8,12}(?:\.\d\d)?$|-[uR]*s|--s")
FIND_ACTION = re.compile(r"-(?:delete|exec|ok|fls|fprint)")
# Without a number behind it, such an option takes the next word.
XXD_OPTION = re.compile(r"--\w|-[cglnosR]\D")
XXD_VALUED = ("-c", "-g", "-l", "-n", "-o", "-s", "-R")
TAR_LISTS = ("tf", "-tf", "tvf", "-tvf", "tzf", "-tzf", "tzvf", "-tzvf", "tjf", "-tjf", "tJf", "-tJf")
# Options run programs, and so does the name of an archive with a colon, which is one on another machine.
TAR_WORD = re.compile(rf"-|[^:]*[:{UNKNOWN}{GLOB}]")
# With these bash takes any word for a variable of the command, or replaces `!` by earlier lines.
SET_OPTION = re.compile(r"[-+]\w*[kH]|keyword|history|histexpand")
# What follows an operand in an expression of `test`.
TEST_OPERATOR = re.compile(r"[!=]?=|[<>\])]|-[ao]|-[a-z]{2}")
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
    "--no-list",  # after --list, operands are names of new branches again
)
GIT_VERBS: dict[str, WritingArguments] = {
    **dict.fromkeys(("status", "rev-parse", "ls-files", "ls-tree", "merge-base", "name-rev", "describe"), PLAIN),
    **dict.fromkeys(("check-ignore", "count-objects", "--version", "version"), PLAIN),
    **dict.fromkeys(("log", "show", "diff", "shortlog", "blame", "whatchanged", "grep"), PRINTS_COMMITS),
    **dict.fromkeys(("cat-file", "rev-list"), PRINTS_COMMITS),
    "branch": WritingArguments(operands=0, letters="dDmMcCfut", options=BRANCH_OPTIONS, lists=("--list",)),
    "remote": WritingArguments(operands=0),
    "stash": WritingArguments(verbs={"list": PRINTS_COMMITS}),
    "tag": WritingArguments(
        operands=0, letters="adsufmF", options=("--delete", "--annotate", "--sign"), lists=("-l", "--list")
    ),
}

READS: dict[str, WritingArguments] = {
    # The shell itself
    **dict.fromkeys((":", "true", "false", "cd", "pushd", "popd", "dirs", "pwd", "exit", "return", "break"), PLAIN),
    **dict.fromkeys(("continue", "shift", "times", "type", "umask"), PLAIN),
    "set": WritingArguments(start=SET_OPTION),
    "wait": WritingArguments(letters="p"),  # it evaluates the index of a variable
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
    "awk": WritingArguments(letters="fileEdopDW", options=AWK_OPTIONS, program=AWK_PROGRAM, values="vF"),
    "diff": PLAIN,
    "rg": WritingArguments(letters="z", options=("--pre", "--hostname-bin", "--search-zip")),
    "sed": WritingArguments(
        letters="efils",
        options=("--expression", "--file", "--in-place", "--line-length", "--separate"),
        program=SED_PROGRAM,
        valued=("-e", "-ne"),
    ),
    "sort": WritingArguments(
        letters="oT", options=("--output", "--compress-program", "--temporary-directory", "--files0-from")
    ),
    "uniq": WritingArguments(operands=1),
    "xxd": WritingArguments(letters="r", operands=1, start=XXD_OPTION, valued=XXD_VALUED, options_first=True),
    # Files
    **dict.fromkeys(("ls", "dir", "stat", "du", "df", "basename", "dirname", "realpath", "readlink"), PLAIN),
    **dict.fromkeys(("mkdir", "touch"), PLAIN),  # they create empty files and folders, and change no content
    "file": WritingArguments(letters="C", options=("--compile",)),
    "find": WritingArguments(start=FIND_ACTION),
    "tar": WritingArguments(verbs=dict.fromkeys(TAR_LISTS, WritingArguments(start=TAR_WORD))),
    "tree": WritingArguments(letters="oR", options=("--output",)),
    # The machine
    **dict.fromkeys(("id", "whoami", "groups", "uname", "arch", "nproc", "uptime", "free", "ps", "printenv"), PLAIN),
    **dict.fromkeys(("which", "tty", "locale", "cal", "who", "w", "lscpu", "lsblk"), PLAIN),
    "crontab": WritingArguments(only=("-l",), operands=0),
    "date": WritingArguments(start=CLOCK),
    "env": WritingArguments(operands=0, letters="S", options=("--split-string",)),
    "hostname": WritingArguments(operands=0, letters="bF", options=("--boot", "--file")),
    "man": WritingArguments(letters="PHXCTtpr", options=MAN_OPTIONS),
    "mount": WritingArguments(
        operands=0,
        letters="aoBLMRU",
        options=("--all", "--bind", "--label", "--move", "--options", "--rbind", "--source", "--target", "--uuid"),
    ),
    # Version control; a global option, such as -c or --exec-path, can name a program
    "git": WritingArguments(verbs={**GIT_VERBS, "--no-pager": WritingArguments(verbs=GIT_VERBS)}),
}
READS |= {"mawk": READS["awk"], "gawk": READS["awk"], "nawk": READS["awk"]}

# Programs that run code, but not if their only argument is one of these.
TELLS_VERSION = {
    **dict.fromkeys(("python", "python3"), ("--version", "-V")),
    **dict.fromkeys(("node", "perl"), ("--version", "-v")),
    **dict.fromkeys(("bash", "ruby"), ("--version",)),
}
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
# Variables that can make the shell, or a program that only reads, run another program; bash calculates the values of the last
# ones, and a calculation may run commands.
STEERING = re.compile(
    r"(?:CD)?PATH|LD_\w+|DYLD_\w+|BASH_\w+|ENV|IFS|PS4|PROMPT_COMMAND|SHELL|SHELLOPTS|BASHOPTS|GCONV_PATH|NLSPATH|TERMINFO"
    r"|GIT_\w+|SSH_\w+|\w*PAGER|MAN\w+|GROFF_\w+|GREP\w*|\w*EDITOR|VISUAL|BROWSER|LESS\w*|\w*_OPTIONS|\w*OPTS|RIPGREP_CONFIG_PATH|JQ_\w+"
    r"|G?AWK\w*|GNUPGHOME|PERL\w*|PYTHON\w*|RUBY\w*|NODE_\w+|POSIXLY_CORRECT|TMPDIR|HOME|XDG_\w+"
    r"|S?RANDOM|SECONDS|OPTIND|HISTCMD|LINENO"
)
END_OF_OPTIONS, STANDARD_INPUT = plain("--"), plain("-")


def is_listed(command: Command) -> bool:
    """Whether it is a program of `READS` or only tells its version, by its bare name or in a folder of system programs."""
    folder, _, name = command.words[0].text.rpartition("/") if command.words else ("", "", "")
    told = [[plain(option)] for option in TELLS_VERSION.get(name, ())]
    return folder in SYSTEM_FOLDERS and (name in READS or list(command.arguments) in told)


def does_more(command: Command) -> str:
    """The reason why a listed program does more than read; empty if it only reads."""
    return _does_more(READS.get(command.name, PLAIN), command.arguments)


def _does_more(row: WritingArguments, words: Sequence[Word]) -> str:
    if row.verbs:
        verb = words[0].text if words else ""
        if verb not in row.verbs or not words[0].certain:
            return f"is called with {verb[:40]!r}" if verb else "is called without a verb"
        return _does_more(row.verbs[verb], words[1:])
    if row.only:
        named = bool(words) and words[0].certain and words[0].text in row.only
        return "" if named and (row.operands is None or len(words) == 1) else f"is called without {row.only[0]}"
    files = split_words(_take_values(row, words)[0])[1] if row.options_first else []
    if files and files[0] is not words[-1]:
        return f"is given words after {files[0].text[:40]!r}"
    return next(_findings(row, words), "") if row != PLAIN else ""


def _findings(row: WritingArguments, words: Sequence[Word]) -> Iterator[str]:
    is_list = bool(words) and words[0].certain and words[0].text in row.lists
    words, given = _take_values(row, words)
    options, operands = split_words(words)
    if row.letters or row.options:
        for word in options:
            if not word.certain:
                yield f"is given a word that may be an option ({word.text[:40]!r}; write ./ or -- before it)"
            elif _is_option(word.text, row):
                yield f"is called with {word.text[:40]}"
    if row.words:
        following = [*words[1:], plain("]")]
        found = (word for word, after in zip(words, following, strict=False) if _may_be_one_of(row.words, word, after))
        yield from (f"is called with {word.text[:40]}" for word in found)
    if row.operands is not None and not is_list:
        # A pattern or a variable may expand to any number of words.
        several = [word for word in words if not word.certain]
        yield from (f"is given {word.text[:40]!r}" for word in (*several, *operands[row.operands :]))
    if row.start is not None and any(_may_begin_with(row.start, word) for word in words):
        yield "is given words that may write or run something"
    if row.program is not None:
        count = 1 + sum(word.text[-1:] in row.values for word in options if row.values)
        if not all(_is_exactly(row.program, word) for word in given or operands[:count]):
            yield "is given code that may write or run something"


def _take_values(row: WritingArguments, words: Sequence[Word]) -> tuple[Sequence[Word], list[Word]]:
    """The words without the options of `valued` and their values, and these values."""
    rest: list[Word] = []
    values: list[Word] = []
    left = iter(words)
    for word in left if row.valued else ():
        if word == END_OF_OPTIONS:
            rest += [word, *left]
        elif word.certain and word.text in row.valued:
            values.append(next(left, END_OF_OPTIONS))
        else:
            rest.append(word)
    return (rest, values) if row.valued else (words, values)


def _may_be_one_of(texts: Sequence[str], word: Word, following: Word) -> bool:
    if word.certain:
        return word.text in texts
    is_operand = not word.splits and following.certain and TEST_OPERATOR.fullmatch(following.text) is not None
    return word.may_be_option and not is_operand


def _may_begin_with(start: re.Pattern[str], word: Word) -> bool:
    return any(map(start.match, word.outlines)) or (word.may_be_option and not word.certain)


def _is_exactly(program: re.Pattern[str], word: Word) -> bool:
    return word.certain and program.fullmatch(word.text) is not None


def split_words(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """The words that are or may be options, and the operands; as GNU programs do, options are accepted anywhere before `--`."""
    end = words.index(END_OF_OPTIONS) if END_OF_OPTIONS in words else len(words)
    options: list[Word] = []
    operands: list[Word] = []
    for word in words[:end]:
        (options if word.may_be_option and word != STANDARD_INPUT else operands).append(word)
    return options, [*operands, *words[end + 1 :]]


def _is_option(text: str, row: WritingArguments) -> bool:
    """Whether the word contains an option of the row: in a group of letters, or as a name in full, abbreviated or with a value."""
    name = text.partition("=")[0]
    if name in row.options:
        return True
    if text.startswith("--"):
        return any(option.startswith(name) for option in row.options if option.startswith("--"))
    return any(letter in row.letters for letter in text[1:])
