"""The table of protected names: which names it means, in which spellings, and what an operator opens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.lib.protected_names import ASKED, CLOSED, FIXED, OPEN, TABLE, fold, judge

ACCESS = {
    CLOSED: [
        *(".env", ".env.local", ".env-prod", ".env_test", ".ENV", "a/b/.env", ".env/bin/x", "id_rsa", "id_rsa.pub"),
        *(".ssh/config", "a/.gnupg", ".toolcrib/key", ".netrc", ".npmrc", ".git-credentials", ".bash_history"),
        *("server.p12", "a/b.PFX", "putty.ppk", "release.jks", "debug.keystore", "all.kdbx"),
        *("server.pem", "a/tls.key", "aws-credentials.json", "secret", "client_secret.json", ".aws/config"),
        *(".kube/config", ".docker/config.json", ".e\u200cnv", "\uff0eenv", ".env.", ".env "),
        *(".envs/.production/.postgres", ".envfile", ".env.py", ".secrets/token", "AuthKey.p8", ".vault-token"),
    ],
    FIXED: [
        *(".git", "a/.git", ".GIT", ".git.", "git~1", ".g\u200dit", ".git/config", ".git/CONFIG", ".git/hooks"),
        *(
            ".git/hooks/pre-commit",
            ".git/config.lock",
            ".git/config.worktree",
            ".git/commondir",
            ".git/modules/a/config",
        ),
        *(".git/modules/a/b/hooks/x", ".git/worktrees/w/gitdir", ".git/rebase-merge/git-rebase-todo", "HEAD", "a/HEAD"),
        *(
            ".git/refs/.git",
            "a/b/.git/hooks/c",
            ".git/index",
            ".git/COMMIT_EDITMSG",
            ".git/HEAD",
            "a/.git/refs/heads/b",
        ),
        *(".git/objects/ab/cd", ".git/info/exclude", ".git/new", ".hg/hgrc", "a/.jj/repo/config.toml", "new/.hg"),
    ],
    ASKED: [
        *(".husky/pre-commit", ".husky", ".vscode/tasks.json", "a/.idea/x", ".envrc", "a/b.pth", "conftest.py"),
        *(".claude/settings.json", "a/.cursor/mcp.json", ".mcp.json", ".devcontainer/devcontainer.json"),
        *("a/ConfTest.py", "sitecustomize.py", "usercustomize.py", ".githooks/x", ".pre-commit-config.yaml"),
        *(
            "lefthook.yml",
            "a/.lefthook.toml",
            "lefthook-local.yaml",
            ".lefthook/x",
            ".overcommit.yml",
            ".lintstagedrc.js",
            "lint-staged.config.mjs",
            ".huskyrc.json",
        ),
    ],
    OPEN: [
        *("a.txt", ".env.example", ".env.sample", ".environment.py", ".envrc.md", "secrets.py", "read_secret.go"),
        *(
            "credentials.md",
            ".pem",
            "config",
            "hooks/x",
            "a/config/hooks",
        ),
        *(".gitignore", ".github/workflows/a.yml", "conftest.pyx", "HEAD.txt", "objects/x", "commondir", "", "/"),
    ],
}


@pytest.mark.parametrize(("access", "path"), [(access, path) for access in ACCESS for path in ACCESS[access]])
def test_every_name_has_its_access(access, path):
    assert judge(path) == access
    assert judge(f"/{path}") == access


def test_folders_may_be_called_like_files_that_hold_secrets_or_mark_a_repository():
    assert judge("secrets", is_folder=True) == OPEN
    assert judge("a.pem", is_folder=True) == OPEN
    assert judge("HEAD", is_folder=True) == OPEN
    assert judge(".env", is_folder=True) == CLOSED
    assert judge(".git", is_folder=True) == FIXED


def test_all_that_lies_in_a_bare_repository_is_fixed():
    def is_repository(folder, name):
        return folder == "bare.git" or (folder == "almost" and name == "objects")

    for path, access in {
        "bare.git/config": FIXED,
        "bare.git/hooks/update": FIXED,
        "bare.git/HEAD": FIXED,
        "bare.git/refs/heads/main": FIXED,
        "bare.git/new": FIXED,
        "bare.git": OPEN,
        "other/config": OPEN,
        "other/HEAD": FIXED,
        "almost/file": OPEN,
        "almost/objects": FIXED,
        "almost/objects/pack/x": FIXED,
    }.items():
        assert judge(path, is_repository=is_repository) == access, path


def test_a_path_that_begins_with_a_dot_is_the_same_path():
    for path, hooks in ((".git/config", ()), ("team/pre-commit", ("team/",)), ("HEAD", ()), (".env", ())):
        assert judge(f"./{path}", hooks=hooks) == judge(path, hooks=hooks) != OPEN


def test_further_folders_of_hooks_are_fixed_and_so_are_those_around_them():
    hooks = ["tools/git/"]
    for path, access in {
        "tools/git/x": FIXED,
        "tools/git": FIXED,
        "tools": FIXED,
        "tools/x": OPEN,
        "git": OPEN,
    }.items():
        assert judge(path, hooks=hooks) == access, path
    assert judge("anything", hooks=["/"]) == FIXED
    assert judge("tools/git/.env", hooks=hooks) == CLOSED


def test_a_further_file_is_fixed_and_a_folder_of_its_name_is_not():
    for hooks, start in (["tools/edit"], ""), (["**/tools/edit"], "a/b/"):
        assert judge(f"{start}tools/edit", hooks=hooks) == FIXED
        assert judge(f"{start}tools", hooks=hooks, is_folder=True) == FIXED
        for path in ("tools", "tools/edit"):  # made, or removed
            assert judge(start + path, hooks=hooks, is_folder=True, is_new_folder=True) == OPEN
        assert judge(f"{start}tools/edit/file", hooks=hooks) == OPEN
    assert judge("tools/edit", hooks=["tools/edit/"], is_folder=True, is_new_folder=True) == FIXED


@pytest.mark.parametrize(
    ("opened", "path"),
    [
        (".env", ".env"),
        (".env", "a/b/.env"),
        (".ENV", ".env"),
        (".env.*", "a/.env.local"),
        ("a/.env", "a/.env"),
        ("./a/.env", "a/.env"),
        (".git/hooks", ".git/hooks/pre-commit"),
        (".git", ".git/config"),
        (".vscode/*.json", ".vscode/tasks.json"),
        ("*", ".git/hooks/x"),
        ("a/", "a/.git/config"),
    ],
)
def test_what_the_operator_opens_is_open_with_all_that_is_below_it(opened, path):
    assert judge(path) != OPEN
    assert judge(path, opened=[opened]) == OPEN


@pytest.mark.parametrize(
    ("opened", "path"),
    [
        ("a/.env", ".env"),
        ("a/.env", "b/a/.env"),
        (".env.test", ".env"),
        (".git/hooks", ".git/config"),
        (".git/hooks", ".git"),
        (".git/hooks", "a/.git/hooks/x"),
        (".vscode/*.json", ".vscode/a/b.json/c"),
        ("", ".env"),
    ],
)
def test_and_nothing_else_is(opened, path):
    assert judge(path, opened=[opened]) != OPEN


@given(st.text(st.characters(blacklist_characters="/\0"), max_size=20))
def test_folding_a_folded_name_changes_nothing(name):
    assert fold(fold(name)) == fold(name)


@given(st.sampled_from(sorted(path for access in (CLOSED, FIXED, ASKED) for path in ACCESS[access])), st.data())
def test_capitals_make_no_difference(path, data):
    upper = data.draw(st.lists(st.booleans(), min_size=len(path), max_size=len(path)))
    spelled = "".join(letter.upper() if flag else letter for letter, flag in zip(path, upper, strict=True))
    assert judge(spelled) == judge(path)


def test_the_table_that_is_shown_has_every_access():
    assert set(TABLE) == {CLOSED, FIXED, ASKED}
    assert all(TABLE.values())
