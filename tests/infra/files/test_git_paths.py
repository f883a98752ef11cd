"""What Git runs or obeys in a workspace is found, whichever file of settings says so."""

import os

import pytest

from toolcrib.infra.files import protected_files
from toolcrib.lib.protected_names import FIXED, OPEN, judge


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(protected_files, "SYSTEM_CONFIGS", (str(tmp_path / "etc" / "gitconfig"),))
    return folder


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    write(folder / "sub" / ".git" / "HEAD", "ref: refs/heads/main\n")
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def access(workspace, path, **facts):
    return judge(path, hooks=protected_files.ProtectedFiles(workspace).find_git_paths(), **facts)


PLACES = {
    "in the home folder": ("home/.gitconfig", {}),
    "in the folder of settings": ("home/.config/git/config", {}),
    "in another folder of settings": ("xdg/git/config", {"XDG_CONFIG_HOME": "xdg"}),
    "in the usual folder of settings": ("home/.config/git/config", {"XDG_CONFIG_HOME": "xdg"}),
    "named for the user": ("own", {"GIT_CONFIG_GLOBAL": "own"}),
    "named for the machine": ("all", {"GIT_CONFIG_SYSTEM": "all"}),
    "of the machine": ("etc/gitconfig", {}),
}


@pytest.mark.parametrize(("file", "variables"), PLACES.values(), ids=PLACES)
def test_settings_of_the_user_and_the_machine_count(home, workspace, tmp_path, monkeypatch, file, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    assert access(workspace, "team/pre-commit") == OPEN
    write(tmp_path / file, f"[core]\nhooksPath = {workspace}/team\n")
    assert access(workspace, "team/pre-commit") == FIXED
    assert access(workspace, "other/pre-commit") == OPEN


SETTINGS = {
    "hooks": ("[core]\nhooksPath = {0}/x\n", "x/pre-commit"),
    "a template of repositories": ("[init]\ntemplateDir = {0}/x\n", "x/hooks/pre-commit"),
    "included settings": ("[include]\npath = ../workspace/x\n", "x"),
    "settings under a condition": ('[includeIf "gitdir:**"]\npath = {0}/x\n', "x"),
    "what included settings name": ("[include]\npath = more\n", "x/pre-commit"),
    "a program that lists changes": ("[core]\nfsmonitor = {0}/x\n", "x"),
    "an editor": ("[core]\neditor = {0}/x --wait\n", "x"),
    "a pager": ("[core]\npager = sh {0}/x\n", "x"),
    "a command of connections": ("[core]\nsshCommand = {0}/x -v\n", "x"),
    "a filter": ('[filter "f"]\nsmudge = {0}/x %f\n', "x"),
    "a helper": ('[credential "https://example.org"]\nhelper = {0}/x\n', "x"),
    "an alias": ("[alias]\ngo = !cd / && {0}/x\n", "x"),
    "a path from the home folder": ("[core]\neditor = $HOME/../workspace/x\n", "x"),
    "a path by a link": ("[core]\neditor = ~/link/x\n", "x"),
}


@pytest.mark.parametrize(("text", "path"), SETTINGS.values(), ids=SETTINGS)
def test_what_a_setting_of_the_user_leads_to_is_not_written(home, workspace, text, path):
    (home / "link").symlink_to(workspace)
    write(home / "more", f"[core]\nhooksPath = {workspace}/x\n")
    write(home / ".gitconfig", text.format(workspace))
    assert access(workspace, path) == FIXED
    assert access(workspace, "y") == OPEN


RELATIVE = {
    "[core]\nhooksPath = .hooks\n": ".hooks/pre-commit",
    "[core]\nhooksPath = ./tools//git/\n": "tools/git/pre-commit",
    "[core]\nfsmonitor = tools/watch\n": "tools/watch",
    "[alias]\nx = !./scripts/x.sh\n": "scripts/x.sh",
}


@pytest.mark.parametrize(("text", "path"), RELATIVE.items())
def test_a_relative_path_of_the_user_means_every_repository_also_a_future_one(home, workspace, text, path):
    write(home / ".gitconfig", text)
    for place in ("", "sub/", "not/yet/there/"):
        assert access(workspace, place + path) == FIXED, place
        assert access(workspace, place + path.upper()) == FIXED, place
        assert access(workspace, f"{place}other") == OPEN
    folder = path.split("/", maxsplit=1)[0]
    if path.count("/") == 2:
        # The folder on the way is made, but not moved there, and replaced by no link.
        assert access(workspace, f"sub/{folder}", is_folder=True, is_new_folder=True) == OPEN
        assert access(workspace, f"sub/{folder}", is_folder=True) == FIXED


def test_a_relative_path_that_leads_out_of_a_repository_means_every_folder(home, workspace):
    write(home / ".gitconfig", "[core]\nhooksPath = ../shared\n")
    assert access(workspace, "shared/pre-commit") == FIXED
    assert access(workspace, "deep/er/shared/pre-commit") == FIXED
    write(home / ".gitconfig", "[core]\nhooksPath = .\n")
    assert access(workspace, "any/file") == FIXED


def test_a_link_under_the_relative_path_is_followed_in_every_known_repository(home, workspace):
    write(home / ".gitconfig", "[core]\nhooksPath = .hooks\n[alias]\nx = !./x.sh\n")
    (workspace / "sub" / ".hooks").symlink_to("../scripts")
    write(workspace / "real.sh", "")
    (workspace / "sub" / "x.sh").symlink_to("../real.sh")
    assert access(workspace, "scripts/pre-commit") == FIXED
    assert access(workspace, "real.sh") == FIXED


def test_a_plain_name_in_a_command_of_the_user_means_the_workspace_and_each_repository_that_has_it(home, workspace):
    write(home / ".gitconfig", "[core]\neditor = sh edit.sh\n")
    assert (access(workspace, "edit.sh"), access(workspace, "sub/edit.sh")) == (FIXED, OPEN)
    write(workspace / "sub" / "edit.sh", "")
    assert (access(workspace, "sub/edit.sh"), access(workspace, "other/edit.sh")) == (FIXED, OPEN)


def test_a_folder_that_an_alias_names_is_open(home, workspace):
    write(home / ".gitconfig", "[alias]\nx = !git log -- src/app docs/\n")
    for path in ("src/app/code.py", "sub/src/app/code.py", "docs/page", "src/other"):
        assert access(workspace, path) == OPEN, path
    assert access(workspace, "src/app", is_folder=True, is_new_folder=True) == OPEN


def test_each_link_on_the_way_to_what_git_runs_is_not_replaced(home, workspace):
    (workspace / "real" / "hooks").mkdir(parents=True)
    (workspace / "way").symlink_to("other")
    (workspace / "other").symlink_to(workspace / "real")
    write(workspace / "sub" / ".git" / "config", "[core]\nhooksPath = ../way/hooks\neditor = ../way/edit\n")
    for path in ("way", "other", "real", "real/hooks/pre-commit", "real/edit"):
        assert access(workspace, path) == FIXED, path
    assert access(workspace, "real/file") == OPEN


def test_links_that_lead_in_a_circle_are_followed_to_an_end(home, workspace):
    (workspace / "way").symlink_to("way")
    write(workspace / "sub" / ".git" / "config", "[core]\nhooksPath = ../way/hooks\n")
    assert (access(workspace, "way"), access(workspace, "file")) == (FIXED, OPEN)


def test_a_hook_that_is_a_link_is_followed(home, workspace):
    write(workspace / "sub" / ".git" / "config", "[core]\nhooksPath = team\n")
    for folder in (".git/hooks", "sub/.git/hooks", "sub/team"):
        (workspace / folder).mkdir(parents=True)
        name = folder.replace("/", "-")
        (workspace / folder / "pre-commit").symlink_to(workspace / "scripts" / name)
        assert access(workspace, f"scripts/{name}") == FIXED, folder
    assert access(workspace, "scripts/other") == OPEN


def test_settings_of_a_repository_that_are_a_link_are_followed(home, workspace):
    write(workspace / "mine", "[core]\nhooksPath = team\n")
    (workspace / "sub" / ".git" / "config").symlink_to("../../mine")
    assert (access(workspace, "mine"), access(workspace, "sub/team/pre-commit")) == (FIXED, FIXED)


def test_a_repository_whose_settings_include_others_is_not_moved(home, workspace):
    assert access(workspace, "sub", is_folder=True) == OPEN
    write(workspace / "sub" / ".git" / "config", "[include]\npath = ../../team/settings\n")
    assert access(workspace, "sub", is_folder=True) == FIXED
    assert access(workspace, "sub/file") == OPEN


def test_a_working_tree_elsewhere_counts(home, workspace):
    write(workspace / "sub" / ".git" / "config", "[core]\nworktree = ../../tree\nhooksPath = team\n")
    assert access(workspace, "tree/team/pre-commit") == FIXED
    assert access(workspace, "tree/file") == OPEN


def test_settings_of_a_linked_worktree_elsewhere_count(home, workspace):
    config = workspace / "sub" / ".git" / "worktrees" / "w" / "config.worktree"
    write(config, f"[core]\nhooksPath = {workspace}/team\n")
    assert access(workspace, "team/pre-commit") == FIXED


def test_what_settings_include_counts_in_a_repository_with_many_worktrees(home, workspace):
    write(workspace / "sub" / ".git" / "config", "[include]\npath = ../team.settings\n")
    for number in range(protected_files.MAX_INCLUDED):
        (workspace / "sub" / ".git" / "worktrees" / f"{number}").mkdir(parents=True)
    assert access(workspace, "sub/team.settings") == FIXED


def test_the_settings_themselves_are_not_written_where_the_home_is_the_workspace(home):
    for path in (".gitconfig", ".config/git/config"):
        assert access(home, path) == FIXED, path
    assert access(home, "notes.txt") == OPEN
    write(home / "dotfiles" / "git.ini", "")
    (home / ".gitconfig").symlink_to("dotfiles/git.ini")
    assert access(home, "dotfiles/git.ini") == FIXED


def test_a_bare_repository_counts(home, workspace):
    for name in ("HEAD", "objects/x", "refs/x"):
        write(workspace / "deep" / "bare.git" / name, "")
    write(workspace / "deep" / "bare.git" / "config", "[core]\nhooksPath = ../hooks\n")
    assert access(workspace, "deep/hooks/post-receive") == FIXED
    assert access(workspace, "hooks/post-receive") == OPEN
    for path in ("config", "HEAD", "index", "refs/heads/x"):
        assert access(workspace, f"deep/bare.git/{path}") == FIXED, path
    # Under another name its settings would lead elsewhere.
    assert access(workspace, "deep/bare.git", is_folder=True) == FIXED


def test_folders_that_are_called_like_parts_of_a_repository_make_none(home, workspace):
    (workspace / "HEAD").mkdir()
    (workspace / "objects").mkdir()
    assert access(workspace, "file") == OPEN
    write(workspace / "sub" / "HEAD", "no repository without objects")
    assert access(workspace, "sub/file") == OPEN


def test_folders_in_which_the_shell_looks_for_programs_are_not_written(home, workspace, monkeypatch):
    (workspace / "real").mkdir()
    (workspace / "way").symlink_to("real")
    monkeypatch.setenv("PATH", f"{workspace}/bin:{workspace}/way:/usr/bin::relative")
    for path in ("bin/git", "way", "real/ls"):
        assert access(workspace, path) == FIXED, path
    assert (access(workspace, "other/git"), access(workspace, "relative/git")) == (OPEN, OPEN)


def test_settings_that_are_no_plain_file_are_left_out_without_waiting(home, workspace):
    os.mkfifo(home / ".gitconfig")
    write(home / ".config" / "git" / "config", "[include]\npath = /dev/zero\n[core]\nhooksPath = .hooks\n")
    assert access(workspace, ".hooks/x") == FIXED


def test_settings_are_read_up_to_a_limit_and_includes_up_to_a_number(home, workspace, monkeypatch):
    monkeypatch.setattr(protected_files, "MAX_CONFIG_BYTES", 1_000)
    write(home / ".gitconfig", "[core]\nhooksPath = .first\n" + "#" * 2_000 + "\nhooksPath = .last\n")
    assert (access(workspace, ".first/x"), access(workspace, ".last/x")) == (FIXED, OPEN)
    monkeypatch.setattr(protected_files, "MAX_INCLUDED", 10)
    for number in range(20):
        write(home / f"{number}", f"[include]\npath = {number + 1}\n[core]\nhooksPath = .h{number}\n")
    write(home / ".gitconfig", "[include]\npath = 0\n")
    assert (access(workspace, ".h0/x"), access(workspace, ".h19/x")) == (FIXED, OPEN)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        self.now += 0.001
        return self.now


def test_a_change_of_known_settings_is_seen_by_the_next_write(home, workspace):
    files = protected_files.ProtectedFiles(workspace, clock=Clock())
    assert files.find_git_paths_for("hooks/x") == ()
    for text, found in {"[core]\nhooksPath = one\n": "one", "[core]\nhooksPath = two\n": "two"}.items():
        write(workspace / "sub" / ".git" / "config", text)
        assert files.find_git_paths_for("hooks/x") == (f"sub/.git/{found}/", f"sub/{found}/")
    write(workspace / "sub" / ".git" / "config", "")
    write(home / ".gitconfig", "[core]\nhooksPath = .hooks\n")
    assert files.find_git_paths_for("hooks/x") == ("**/.hooks/",)


def test_a_write_looks_at_the_repositories_on_its_way_now_and_at_others_soon(home, workspace):
    clock = Clock()
    files = protected_files.ProtectedFiles(workspace, clock=clock)
    files.find_git_paths_for("hooks/x")
    write(workspace / "new" / ".git" / "config", "[core]\nhooksPath = ../hooks\n")
    found = ("hooks/", "new/hooks/")  # from the working tree, and from the folder of the repository
    assert files.find_git_paths_for("new/file") == found
    assert files.find_git_paths_for("hooks/x") == ()
    clock.now += 1
    assert files.find_git_paths_for("hooks/x") == found


def test_a_write_compares_the_folders_for_a_small_part_of_the_time_only(home, workspace, monkeypatch):
    looked = []
    clock = Clock()
    monkeypatch.setattr(protected_files.ProtectedFiles, "_look", lambda self: looked.append(clock.now))
    files = protected_files.ProtectedFiles(workspace, clock=clock)
    for _ in range(200):
        files.find_git_paths_for("hooks/x")
    assert 1 < len(looked) <= 200 / 10


def test_a_workspace_that_is_too_large_is_refused_to_a_write_too(home, workspace, monkeypatch):
    monkeypatch.setattr(protected_files, "MAX_ENTRIES", 1)
    files = protected_files.ProtectedFiles(workspace)
    for _ in range(2):
        with pytest.raises(Exception, match="too many files"):
            files.find_git_paths_for("hooks/x")
