"""Settings of Git are read as Git reads them, and each that names what Git runs or obeys is known."""

import shutil
import subprocess

import pytest

from toolcrib.infra.files.protected_files import Named, NamedPath, find_named_paths, read_settings

TEXTS = [
    "",
    "[core]\n\thooksPath = tools/git\n",
    "[core] hooksPath=tools/git\n",
    "[CORE]\nHooksPath\t=\ttools # ours\n\teditor = ed ; also ours\n",
    '[core]\nhooksPath = "tools # all"  \n',
    '[core]\nhooksPath = a"b c"d\\"e\\\\f\n',
    "[core]\nhooksPath = tools\\\n/git\n\teditor = x\n",
    "[core]\n# a comment that ends in \\\nhooksPath = tools\n",
    "[core]\nhooksPath = tools # a comment that ends in \\\neditor = x\n",
    '[includeIf "gitdir:a=b]/"] path = other\n[include]\npath=~/x\n',
    '[filter "a\\"b"]\nclean = ./clean %f\n\n[alias]\nlg = "!git log --format=\'%h # %s\'"\n',
    "[core.sub]\neditor = x\n[user]\nname\n",
    "\ufeff[core]\r\nhooksPath = tools\r\neditor = a\\\r\nb\r\n",
    "[core]\nhooksPath =\neditor = x",
    '[a "b"]c=d\n',
]


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_settings_are_read_as_git_reads_them(tmp_path):
    for text in TEXTS:
        (tmp_path / "config").write_bytes(text.encode())
        command = ["git", "config", "--list", "-z", "--file", str(tmp_path / "config")]
        listed = subprocess.run(command, capture_output=True, check=True, timeout=30, encoding="utf-8").stdout
        expected = []
        for line in listed.split("\0")[:-1]:
            key, has_value, value = line.partition("\n")
            section, _, rest = key.partition(".")
            expected.append((section, rest.rpartition(".")[2], value if has_value else "true"))
        assert list(read_settings(text)) == expected, text


@pytest.mark.parametrize("text", ["[core\nhooksPath = a\n[core]\neditor = b\n", "= x\n[core]\n%% y\neditor = b\n"])
def test_a_line_that_git_refuses_hides_no_other(text):
    assert ("core", "editor", "b") in set(read_settings(text))


NAMED = {
    "core.hooksPath = .githooks": (Named.FOLDER, ".githooks"),
    "core.hooksPath = :(optional)team": (Named.FOLDER, "team"),
    "init.templateDir = ~/ws/template": (Named.FOLDER, "~/ws/template"),
    "include.path = team/settings": (Named.INCLUDED, "team/settings"),
    "mergetool.path = ./merge": (Named.FILE, "./merge"),
    "core.fsmonitor = ./watch --all": (Named.WORD, "./watch"),
    "core.editor = ws/editor --wait": (Named.WORD, "ws/editor"),
    "sequence.editor = sh edit.sh": (Named.PLAIN_WORD, "edit.sh"),
    "core.pager = LESS=R ./page": (Named.WORD, "./page"),
    "pager.log = ./page": (Named.WORD, "./page"),
    "core.sshCommand = ./ssh -i ~/key": (Named.WORD, "./ssh"),
    "core.askPass = ./ask": (Named.WORD, "./ask"),
    "filter.clean = ./clean %f": (Named.WORD, "./clean"),
    "filter.smudge = ./smudge": (Named.WORD, "./smudge"),
    "filter.process = ./process": (Named.WORD, "./process"),
    "credential.helper = !'./helper' get": (Named.WORD, "./helper"),
    "credential.helper = /srv/ws/helper": (Named.WORD, "/srv/ws/helper"),
    "alias.x = !cd sub && ./run all": (Named.WORD, "./run"),
    "alias.y = !$(git rev-parse --show-toplevel)/scripts/y": (Named.WORD, "./scripts/y"),
    "diff.external = ./diff": (Named.WORD, "./diff"),
    "diff.textconv = ./text": (Named.WORD, "./text"),
    "merge.driver = ./driver %O": (Named.WORD, "./driver"),
    "gpg.program = ./sign": (Named.WORD, "./sign"),
    "difftool.cmd = ./tool $LOCAL": (Named.WORD, "./tool"),
    "hook.command = ./lint": (Named.WORD, "./lint"),
    "interactive.diffFilter = ./colour": (Named.WORD, "./colour"),
    "submodule.update = !./update": (Named.WORD, "./update"),
    "remote.url = ext::./transport %S": (Named.WORD, "./transport"),
    "core.worktree = ../tree": (Named.TREE, "../tree"),
    "svn.authorsProg = ./authors": (Named.WORD, "./authors"),
    "alias.z = -c diff.external=./diff diff": (Named.WORD, "./diff"),
    "alias.b = bisect run ./test": (Named.WORD, "./test"),
    "alias.h = bisect run tools/test": (Named.WORD, "tools/test"),
    "alias.i = rebase --exec=tools/test main": (Named.WORD, "tools/test"),
    "alias.j = rebase -x./test main": (Named.WORD, "./test"),
    "alias.k = !pushd sub && ./run": (Named.WORD, "sub/./run"),
    "alias.c = !cd sub/deep && ./run": (Named.WORD, "sub/deep/./run"),
    "alias.d = !cd sub && sh run": (Named.WORD, "sub/run"),
    "alias.e = !git -C sub x && ./run": (Named.WORD, "sub/./run"),
    "alias.f = !$PWD/scripts/f": (Named.WORD, "./scripts/f"),
    "alias.g = !`pwd`/scripts/g": (Named.WORD, "./scripts/g"),
    "core.editor = sh edit": (Named.PLAIN_WORD, "edit"),
    "core.editor = /usr/bin/python3 -u edit": (Named.PLAIN_WORD, "edit"),
    "core.editor = './my tools/edit' --wait": (Named.WORD, "./my tools/edit"),
    "core.editor = ./my\\\\ tools/edit --wait": (Named.WORD, "./my tools/edit"),
}


@pytest.mark.parametrize(("setting", "named"), NAMED.items(), ids=NAMED)
def test_what_a_setting_makes_git_run_or_obey_is_named(setting, named):
    key, _, value = setting.partition(" = ")
    section, _, name = key.partition(".")
    assert NamedPath(*named) in set(find_named_paths(f'[{section} "x"]\n{name} = {value}\n'))


@pytest.mark.parametrize(
    "setting",
    [
        *("core.fsmonitor = true", "core.editor = vim", "alias.st = status docs/", "branch.merge = refs/heads/main"),
        *("core.pager = less -F", "core.editor = code --wait", "credential.helper = cache.sh", "alias.d = diff a/b"),
        *("alias.v = !jq -r .version package.json", "alias.l = !git log -- src/ > log.txt", "alias.s = !cd src && ls"),
        *("alias.g = !sh -c 'git status'", "alias.h = !git log --format='%h %s'"),
    ],
)
def test_what_names_no_file_is_left_out(setting):
    key, _, value = setting.partition(" = ")
    section, _, name = key.partition(".")
    assert not list(find_named_paths(f"[{section}]\n{name} = {value}\n"))
