"""Spellings by which an attacker deletes, writes or runs other programs without naming a forbidden command."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_tools import host_tool
from soaks import examples
from toolcrib import Call, RuleEngine, Tool
from toolcrib.lib.shell.programs import READS, WRAPPERS

SPELLINGS = {
    "deletes or overwrites": [
        "find . -delete", "find . -type f -delete", "find . -name '*' -print -delete", "find -- . -delete", "find . \\( -delete \\)",
        "find . $(echo -delete)", "X=-delete; find . $X", "find . -fprint x", "find . -fprintf x %p", "find . -fls x", "find *",
        "truncate -s 0 x", "cp /dev/null x", "mv x y", "ln -sf a b", "unlink x", "rmdir x", "install a b", "git clean -fdx",
        "git checkout .", "git reset --hard", "git stash", "git branch -D x", "git tag -d x", "git rm x", "sort x -o x",
        "sort -ox x", "sort --output=x x", "sort --outp x x", "uniq a b", "uniq *", "uniq a*", "tree -o x", "sed -i s/a/b/ x", "sed -ni p x",
        "sed --in-place p x", "sed 'w x' y", "sed '1w x' y", "sed 's/a/b/w x' y", "awk '{print > \"x\"}' y", "tee x", "split x",
        "xxd -r a b", "xxd a b", "file -C -m x", "history -c", "history -cw", "history -d 1", "tar xf x", "unzip x", "gzip x", "rsync a b",
        "perl -pi -e s/a/b/ x", "ex -c wq x", "ed x", "patch < x", "chmod 777 x", "chattr +i x", "setfacl -m u:x:r y", "crontab -r",
        "crontab -e", "crontab x", "mount /dev/sdb1 x", "mount --bind a b", "umount x", "swapon x", "git log --output=x", "git diff --outp=x",
        "gawk -dx p y", "gawk --dump-variables=x p y", "gawk -ox p y", "gawk --pretty=x p y", "gawk -p p y", "tree -R -H . -L 1", "date 111721002026", "date 11172100.30",
        "git branch --set-upstream-to=a/b", "git branch --unset-upstream", "git branch --list --no-list x", "git branch --list --no-li x", "GAWK_PERSIST_FILE=x gawk 1 y", "git rev-list --output=x HEAD", "mount -Ux", "mount -Lx", "mount --target=x",
        "find . -delet?", "find . -[d]elete", "find . -maxdepth 1$(cat x)", "find . -newer x$X", "sort x$(cat y)", "x=' -o y'; sort a$x", "sort {-oy,{x},z}", "find . {-delete,{x}}", f"sort {'{' * 20}-oy{',x}' * 20}", 'sort "a$@"', "sort a`cat x`", "git log HEAD$X",
        "for x in - -o; do sort $x y; done", "for x in -- -o; do sort $x y z; done", "uniq a \u0663>x", "date -us 10:00", "date --se=10:00",
    ],
    "runs a program by an option": [
        "find . -exec touch x {} +", "find . -exec touch x {} \\;", "find . -execdir touch x \\;", "find . -ok ls \\;", "find . -okdir ls \\;",
        "tar cf x y --checkpoint=1 --checkpoint-action=exec=pwn", "tar xf x --to-command=pwn", "tar -I pwn -cf x y", "tar --use-compress-program=pwn -xf x",
        "git -c core.pager=pwn log", "git -c alias.x=!pwn x", "git --exec-path=. log", "git -C x status", "git --git-dir=x status",
        "git fetch --upload-pack=pwn x", "git clone --upload-pack pwn x", "git ls-remote --upload-pack=pwn x", "git diff --ext-diff",
        "git log --textconv", "git grep -Oid x", "git grep --open-files-in-pager=pwn x", "git -p log", "git archive --exec=pwn x",
        "git cat-file --filters x", "man -P pwn ls", "man -Pid ls", "man --pager=pwn ls", "man -H'pwn' ls", "sort --compress-program=pwn x", "sort --comp pwn x",
        "rg --pre pwn x", "rg --hostname-bin pwn x", "ssh -o ProxyCommand=pwn x", "ssh x pwn", "scp -S pwn a b:c", "rsync -e pwn a b:c",
        "zip x y -T -TT pwn", "vim -c ':!pwn' x", "less x", "more x", "gdb -ex 'shell pwn'", "npx x", "pipx run x", "uvx x", "bunx x",
        "docker run x", "make", "make -f x", "env -S 'touch x'", "env --split-string='touch x'", "env touch x", "nmap --script x",
        "awk -f x y", "awk -i inplace p x", "gawk -l x p", "awk --load=x p", "gawk -E x", "sed -f x y", "sed --file=x y", "strace ls", "xterm -e pwn",
        "jobs -x pwn", "jobs -lx pwn", "zgrep a b", "mawk -W exec x", "gawk -D p x", "man -C x ls", "man --config-file=x ls", "man --conf x ls", "man -Tx ls", "man -t ls", "rg -z a",
    ],
    "runs code in its words": [
        "python -c 'import os'", "python3 -c 1", "python3.12 -m http.server", "perl -e 1", "perl -ne 1 x", "ruby -e 1", "node -e 1", "node -p 1",
        "php -r 1", "lua -e 1", "deno eval 1", "Rscript -e 1", "awk 'BEGIN{system(\"pwn\")}'", "awk -F , 'BEGIN{system(\"pwn\")}'",
        "awk -v a=b 'BEGIN{system(\"pwn\")}'", "awk 'BEGIN{\"pwn\"|getline}'", "awk '{print | \"sh\"}' x", "gawk '@load \"x\"'", "mawk 'BEGIN{system(\"pwn\")}'",
        "sed '1e pwn' x", "sed 'e' x", "sed 's/.*/pwn/e' x", "sed -n '1!G;h;e' x", "sed -l 5 's/a/pwn/e' x", "sed -s 'e pwn' x", "sed -e 'e pwn' x",
        'awk "BEGIN{$(cat x)}"', 'awk "{$X}" y', "awk B*", "awk x/1*", "awk -v a=b B*", 'awk -F , "$X"', "awk --assign a=b B*", "awk 'BEGIN{pr\\\nint > \"x\"}'", "awk 'BEGIN{print 1; print @f(2)}'", "awk 'BEGIN{ARGV[1]=\".e\" \"nv\"; ARGC=2} 1'",
        '[ "$(echo -v)" "$(cat x)" ]', "[ $(cat x) -gt 1 ]", '[ a -a "$X" "$Y" ]', 'wait -p "$(cat x)"', "for x in -v pwn; do command $x; done",
        "sed --expression='e pwn' x", "eval pwn", "sh x", "bash x", "bash -c pwn", ". ./x", "source x", "trap pwn EXIT", "alias ls=pwn; ls", "exec pwn", "command pwn",
        "builtin eval pwn", "xargs pwn", "ls | xargs pwn", "parallel pwn ::: x", "watch pwn", "timeout 5 pwn", "nice pwn", "time pwn", "nohup pwn", "sudo pwn",
        "su -c pwn", "setsid pwn", "busybox pwn", "at now", "batch", "script -c pwn", "printf -v 'a[$(pwn)]' x", "test -v 'a[$(pwn)]'", "unset 'a[`pwn`]'",
        "let 'a[$(pwn)]=1'", "read 'a[$(pwn)]'", "x='a[$(pwn)]'; echo $((x))", "readonly -a 'x=($(pwn))'", "readonly -A 'x=([`pwn`]=1)'", "readonly -fa 'x=($(pwn))'", "mapfile -C pwn -c 1 x", "enable -f x y", "complete -C pwn x",
    ],
    "decides what runs by a variable": [
        "LD_PRELOAD=./x ls", "LD_LIBRARY_PATH=. ls", "LD_AUDIT=./x ls", "PATH=.:$PATH ls", "PATH=. ls", "PATH=.; ls", "export PATH=.", "BASH_ENV=x ls",
        "ENV=x ls", "BASH_FUNC_ls%%='() { pwn; }' ls", "IFS=x; ls", "PS4='$(pwn)' ls", "PROMPT_COMMAND=pwn ls", "PAGER=pwn man ls",
        "MANPAGER=pwn man ls", "GIT_PAGER=pwn git log", "GIT_SSH_COMMAND=pwn git log", "GIT_EXTERNAL_DIFF=pwn git diff", "GIT_DIR=x git status",
        "EDITOR=pwn ls", "LESSOPEN='|pwn' ls", "PYTHONPATH=. ls", "PERL5OPT=-Mx ls", "NODE_OPTIONS=--x ls", "RIPGREP_CONFIG_PATH=x rg y", "export LD_PRELOAD=x; ls",
        "readonly PATH=.", "local PATH=.", "read PATH", "for PATH in .; do ls; done", "printf -v PATH .", "declare -x PATH=.", "export $X", "unset PATH",
        "getopts a PATH", "TAR_OPTIONS=x tar tf y", "HOME=. ls", "GCONV_PATH=. ls", "X=1 PATH=. ls",
        "export P$X=.; ls", "export P{ATH,}=.", "export P?TH=.", "x='1 PATH=.'; export A$x", "read P* < x", "read -aPATH < x", "read -raPATH < x", "printf -vPATH .; ls",
        'printf "$(echo -v)" PATH .', "printf $X PATH .", "set -k; ls PATH=.", "set -o keyword", "set -ek", "set -o histexpand", "set -H", 'set -o "$X"', "GNUPGHOME=. git log --show-signature",
        "GREP=pwn zgrep a b", "export GREP=pwn", "MANROFFOPT=-U man x", "MANPATH=. man x", "GROFF_FONT_PATH=. man x",
    ],
    "writes where others read": [
        "echo x >> ~/.bashrc", "echo x >> $HOME/.bashrc", "echo x > ~/x", "echo x > /etc/cron.d/x", "echo x > /tmp/x", "echo x > ../x", "echo x > a/../../x",
        "echo x > .envrc", "echo x > .profile", "echo x > .vscode/tasks.json", "echo x > conftest.py", "echo x > sitecustomize.py", "echo x > a/x.pth",
        "echo x > $X", "echo x > *", "cat x > .github/y", "echo x >| ~/x", "echo x <> ~/x", "echo x >& ~/x", "ls 2> ~/x", "ls &> ~/x", "> ~/x",
        "{ ls; } > ~/x", "for f in a; do ls; done > ~/x", "f=~/x; ls > $f", "ls > /dev/$X",
        "cd / && echo x > etc/profile", "cd ~; echo x > y", "cd && ls > x", "cd ..; ls > x", "cd .vscode && echo x > tasks.json", "pushd /tmp; ls > x",
        "cd -- ..; ls > x", "cd -P /; ls > x", "cd -; ls > x", "(cd ..; ls >> x)", "CDPATH=/; cd etc; ls > x", "cd src/..; ls > x",
    ],
    "hides what it does": [
        "l's' $(pwn)", "ls `pwn`", 'ls "$(pwn)"', "ls ${x:-$(pwn)}", "ls $(($(pwn)))", "cat <<E\n$(pwn x; pwn)\nE", "ls; pwn", "ls & pwn",
        "ls && pwn", "ls || pwn", "ls | pwn", "ls |& pwn", "ls\npwn", "(pwn)", "{ pwn; }", "if pwn; then ls; fi", "while pwn; do ls; done", "! pwn",
        "for f in a; do pwn; done", "case a in a) pwn;; esac", "f() { pwn; }; f", "function f { pwn; }; f", "function ls { pwn; }; ls", "ls <(pwn)", "ls > >(pwn)",
        "[[ a || pwn ]]", "((pwn))", "$'\\x70wn'", "p\\wn", "'p''wn'", "$X", "${X}", "$(echo pwn)", "`echo pwn`", "/usr/bin/l?", "l{s,}", "A=p; ${A}wn",
        "x\u00e9=/../pwn ls", "ls\u00a0x", "[\u00a0-f x ]", "cat <<E\nE\\\n\npwn\nE", "cat <<E\na\nE\\\n\npwn\nE", "cat <<-E\n\tE\\\n\npwn\n\tE", "cat <<EF\nE\\\nF\npwn\nEF",
        "./ls", "/tmp/ls", "../bin/cat x", "ls # x\npwn", "ls \\\n; pwn", "ls;pwn", "ls;;pwn", "coproc pwn", "time { pwn; }", "'pwn x'", "-x", "ls !(x)",
        "cat <<< $(pwn)", "ls $[$(pwn)]", "a=(x $(pwn))", 'ls $"$(pwn)"', "echo ${x@P}", "x='$(pwn)'; echo ${x@P}", "read x < y; echo $((x))", "echo ${x:y}", "echo ${x[y]}", ": ${LD_PRELOAD:=x}", "set -a; : ${PAGER=pwn}; man ls", "read x < y; test -v $x", "[ -R $x ]",
        'echo "$\\\n(pwn)"', "cat <<E\n$\\\n(pwn)\nE", "x='$(pwn)'; echo $\\\n{x@P}", "x=a; xy=-oout; sort $x\\\ny f", "echo $(( $\\\n\\\n(pwn) ))",
    ],
}  # fmt: skip
LINES = [(how, line) for how, lines in SPELLINGS.items() for line in lines]
# Names that a shell looks up itself; in every line they only read.
ORDINARY = [
    "ls -la", "ls -la src tests", "cat README.md", "head -n 20 x | tail -5", "grep -rn 'TODO' src | sort | uniq -c | sort -rn | head",
    "find . -name '*.py' -type f", "find src -newer x -print", "wc -l src/*.py", "cut -d, -f1 x | tr a-z A-Z", "awk '{print $1}' x",
    "awk -F, '{ total += $2 } END { print total }' x", "sed -n '10,20p' x", "sed 's/a/b/g' x", "sed '/^#/d' x", "git status --short",
    "git log --oneline -5", "git diff HEAD~1 -- src", "git --no-pager log -1", "git show HEAD:x", "git branch", "git branch -a", "git remote -v",
    "git stash list", "pwd; ls", "cd src && ls", "cd src && ls > list.txt", "cd ./src; ls 2> /dev/null", "cd .. && ls 2>/dev/null", "cd src; cd -; ls", "echo hi > out.txt", "ls > docs/list.txt 2>&1", "ls 2>/dev/null || true", "date +%F", "uname -a",
    "for f in *.py; do wc -l $f; done", "if test -f x; then cat x; else echo no; fi", "while read line; do echo $line; done < x",
    "cat <<'E' > notes.txt\nrm -rf /\nE", "mkdir -p build && touch build/x", "which python3", "command -v git", "type ls", "man ls", "crontab -l", "mount",
    "env", "printenv PWD", "history", "history 20", "LC_ALL=C sort x", "diff a b", "stat x; file x", "du -sh . | cut -f1", "rg -n pattern src", "jq .a x.json",
    "test || ls", "test -d x && echo yes", "[ -f x ] && cat x", "echo $(date) $USER", "sleep 1; echo done", "exit 3", "true && false", "ps aux | grep x", "xxd x | head",
    "awk '$3 > 100' x", "awk '$1 == \"a\" || $2 > 5 {print $3}' x", "awk -F: -v n=1 '{print $n}' src/*.py", "date -Iseconds", "date -dyesterday +%F", "find . -name 'my-exec*'",
    '[ "$X" = a ] && ls', '[ -n "$X" -a -d src ] && ls', 'test -z "$X" || ls', "printf '%s\\n' \"$X\"", "printf -- x", "set -euo pipefail; ls", "ls & wait", "export A=$X", 'sort "a$X"', "uniq -c x > counts.txt",
    "find . -path ./.git -prune -o -type f -print", "find . -name .git -prune -o -name '*.py' -print", "tree -a -I '.git|build'", "diff -r -x .git a b", "cat <<E\na\\\nb\nE", "echo a\u00a0b",
]  # fmt: skip


def judge(line: str, tool: Tool | None = None, workspace: Path = Path("/srv")) -> str:
    return RuleEngine(workspace=workspace).judge(tool, Call(name="shell", arguments={"command": line})).decision


def tool_that_requires(*requires: str) -> Tool:
    return host_tool("run", requires=frozenset(requires))


def test_the_table_is_large_enough_to_mean_something():
    assert len({line for _, line in LINES}) > 300


@pytest.mark.spec("S4-18")
def test_no_spelling_is_run_without_confirmation():
    assert [(how, line) for how, line in LINES if judge(line) == "allow"] == []


@pytest.mark.parametrize("line", ORDINARY)
def test_what_only_reads_or_writes_a_plain_file_of_the_workspace_runs_at_once(line):
    assert judge(line) == "allow"
    assert judge(line, tool_that_requires("shell.execute")) == "allow"


@pytest.mark.parametrize(
    "line", ["find . -delete", "python3 -c 1", "git -c x=y log", "LD_PRELOAD=x ls", "ls > ~/x", "tar xf x"]
)
def test_a_host_function_that_takes_a_command_is_asked_about_what_is_known_to_do_more(line):
    assert judge(line, tool_that_requires()) == "confirm"


@pytest.mark.parametrize("line", ["play", "turn on the lights", "sync", "f() { ls; }"])
def test_a_host_function_may_mean_something_else_by_a_command(line):
    assert judge(line, tool_that_requires()) == "allow"
    assert judge(line, tool_that_requires("shell.execute")) == "confirm"


def test_no_program_of_the_table_lets_a_command_in_its_words_through():
    lines = [f"{name} {words}" for name in sorted(READS) for words in ("$(pwn)", "`pwn`", "<(pwn)", "x > ~/y")]
    assert [line for line in lines if judge(line) != "confirm"] == []


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("make", "allow"),
        ("make -j4 all && npm test -- -x", "allow"),
        ("npm install", "confirm"),
        ("./make", "confirm"),
        ("CC=pwn make", "confirm"),
        ("make > ~/x", "confirm"),
        ("m$X", "confirm"),
        ("npm $X", "confirm"),
        ("make; rm -rf x", "deny"),
        ("make .env", "deny"),
    ],
)
async def test_an_operator_allows_commands_by_their_first_words(line, decision, crib_of):
    crib = crib_of(grants={"*": ["shell.execute"]}, safety_rules={"commands": ["make", "npm test"]})
    verdict = crib.explain("shell", command=line).refusal
    assert ("allow" if verdict is None else verdict.verdict.decision) == decision


def test_a_wrapper_that_is_also_in_the_table_only_reads_without_a_command():
    assert {name: judge(f"{name} pwn") for name in WRAPPERS & set(READS)} == {
        "command": "confirm",
        "env": "confirm",
        "jobs": "confirm",
    }


AROUND = st.sampled_from(
    [
        "{}", "ls; {}", "ls && {}", "ls | {}", "ls & {}", "ls\n{}", "({})", "{{ {}; }}", "! {}", "if {}; then ls; fi", "for f in a; do {}; done",
        "while {}; do break; done", "echo $({})", "echo `{}`", 'echo "{}"', "echo '{}'", 'echo "$({})"', "echo '$({})'", "echo ${{x:-$({})}}",
        "echo $(( $({}) ))", "x=$({}); ls", "x='{}'; echo $x", "cat <<E\n{}\nE", "cat <<'E'\n{}\nE", "cat <<E\n$({})\nE", "ls # {}", "ls # x\n{}",
        "echo \\\n{}", "echo \\{}", "ls;\\\n{}", "echo $'{}'", "cat <({})", "f() {{ {}; }}; f", "[[ -n $({}) ]]", "test -n $({})", "sed 's/a/{}/' o",
        "sed 's/.*/{}/e' o", "eval {}", "sh -c '{}'", "env {}", "echo {} > o", "echo {}", "x=1 {}", "case a in a) {};; esac", "a[$({})]=1", "echo {{a,{}}}",
        "cat <<E\nE\\\n\n{}\nE", "cat <<-E\n\tE\\\n\n{}\n\tE", "x\u00e9=1 {}", "x\u00e9=/{} ls", "\u00a0{}", "ls\u00a0;{}", "set -k; ls {}", "echo a$({})", 'x="{}"; ls $x', "ls [\u00a0]{}",
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder for PATH that holds a few harmless programs, and `pwn`, which leaves a note."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("ls", "cat", "sed"):
        (folder / name).symlink_to(shutil.which(name))
    (folder / "pwn").write_text(f"#!/bin/sh\n: > {folder / 'note'}\n")
    (folder / "pwn").chmod(0o755)
    return folder


@settings(max_examples=examples(400))
@given(around=st.lists(AROUND, min_size=1, max_size=4))
def test_no_line_that_is_allowed_runs_a_program_that_is_in_no_table(programs, around):
    line = "pwn"
    for form in around:
        line = form.format(line)
    if judge(line) != "allow":
        return
    for shell in filter(None, map(shutil.which, ("bash", "dash"))):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [shell, "-c", line],
                cwd=folder,
                env={"PATH": str(programs), "HOME": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
                check=False,
            )
        assert not (programs / "note").exists(), f"{shell} ran pwn"
