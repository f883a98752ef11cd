"""The commit of a folder: what git itself would say, read without starting it, and `unknown` for everything odd."""

import os
import subprocess

import pytest

from toolcrib.features.folders.build_files import MAX_FILE_BYTES, UNKNOWN, read_commit

SHA = "0123456789abcdef0123456789abcdef01234567"
FACTS = {
    **{f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def git(folder, *words):
    command = ["git", "-c", "safe.directory=*", "-c", "protocol.file.allow=always", "-C", str(folder), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=True, env={"PATH": os.environ["PATH"], **FACTS}
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    (folder / "tools").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


@pytest.fixture
def mark(tmp_path):
    """Write a `.git` by hand."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path / ".git" / name.replace("__", "/").replace("_", "-")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path

    return write


class TestAsGitSays:
    @pytest.mark.spec("S2-54")
    def test_a_branch_is_followed_from_any_folder_of_the_repository(self, repository):
        assert read_commit(repository / "tools") == git(repository, "rev-parse", "HEAD") != UNKNOWN

    def test_a_branch_that_was_packed(self, repository):
        git(repository, "branch", "feature/main")
        git(repository, "pack-refs", "--all")
        assert not (repository / ".git" / "refs" / "heads" / "main").exists()
        assert read_commit(repository) == git(repository, "rev-parse", "HEAD")

    def test_a_loose_branch_counts_before_a_packed_one(self, repository):
        git(repository, "pack-refs", "--all")
        git(repository, "commit", "-q", "--allow-empty", "-m", "two")
        assert read_commit(repository) == git(repository, "rev-parse", "HEAD")

    def test_no_branch_at_all(self, repository):
        git(repository, "checkout", "-q", "--detach")
        assert read_commit(repository) == git(repository, "rev-parse", "HEAD")

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_worktree(self, repository, tmp_path, packed):
        git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
        git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "other")
        if packed:
            git(repository, "pack-refs", "--all")
        assert read_commit(tmp_path / "tree") == git(tmp_path / "tree", "rev-parse", "HEAD")
        assert read_commit(tmp_path / "tree") != read_commit(repository)

    def test_a_submodule(self, repository, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        git(other, "init", "-q", "-b", "main")
        git(other, "submodule", "--quiet", "add", str(repository), "tools")
        assert (other / "tools" / ".git").is_file()
        assert read_commit(other / "tools") == git(repository, "rev-parse", "HEAD")

    def test_a_repository_of_longer_hashes(self, tmp_path):
        git(tmp_path, "init", "-q", "--object-format=sha256")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
        assert len(read_commit(tmp_path)) == 64
        assert read_commit(tmp_path) == git(tmp_path, "rev-parse", "HEAD")

    def test_before_the_first_commit(self, tmp_path):
        git(tmp_path, "init", "-q")
        assert read_commit(tmp_path) == UNKNOWN


class TestOdd:
    @pytest.mark.spec("S2-54")
    def test_outside_git(self, tmp_path):
        assert read_commit(tmp_path) == UNKNOWN

    def test_the_nearest_repository_counts_even_if_it_is_broken(self, repository):
        (repository / "tools" / ".git").write_text("nonsense")
        assert read_commit(repository / "tools") == UNKNOWN

    @pytest.mark.parametrize(
        "head",
        [
            *("", "nonsense", SHA[:39], f"{SHA}0", SHA.upper(), f"{SHA} x", f"ref: {SHA}", "ref: ", "ref: HEAD"),
            *("ref: ../secret", "ref: refs/../secret", "ref: refs/heads/../../secret", "ref: /secret", "ref: refs/"),
            *("ref: refs/heads/a b", "ref: refs//heads", "ref: refs/heads/loop", "ref: refs/heads/\0"),
            *(b"\xff\xfe\0", f"ref: refs/{'a' * 4_000}", f"{SHA}{' ' * MAX_FILE_BYTES}"),
        ],
    )
    def test_a_head_that_git_would_not_write(self, mark, tmp_path, head):
        (tmp_path / "secret").write_text(SHA)
        folder = mark(HEAD=head, secret=SHA, refs__heads__loop="ref: refs/heads/loop")
        assert read_commit(folder) == UNKNOWN

    @pytest.mark.parametrize(
        "packed", ["", f"{SHA}refs/heads/main", f"x{SHA} refs/heads/main", f"{SHA} refs/heads/mai"]
    )
    def test_a_branch_that_is_not_there(self, mark, packed):
        assert read_commit(mark(HEAD="ref: refs/heads/main", packed_refs=packed)) == UNKNOWN

    @pytest.mark.parametrize(
        "text", ["gitdir: ", "gitdir: \0", "gitdir: .git", f"gitdir: {'x/' * 1_000}", "gitdir: /dev"]
    )
    def test_a_file_that_leads_nowhere(self, tmp_path, text):
        (tmp_path / ".git").write_text(text)
        assert read_commit(tmp_path) == UNKNOWN

    def test_nothing_waits_for_a_pipe_and_nothing_endless_is_read(self, tmp_path):
        os.mkfifo(tmp_path / ".git")
        assert read_commit(tmp_path) == UNKNOWN
        (tmp_path / ".git").unlink()
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").symlink_to("/dev/zero")
        assert read_commit(tmp_path) == UNKNOWN
        (tmp_path / ".git" / "HEAD").unlink()
        os.mkfifo(tmp_path / ".git" / "HEAD")
        assert read_commit(tmp_path) == UNKNOWN

    def test_a_link_to_itself(self, tmp_path):
        (tmp_path / ".git").symlink_to(tmp_path / ".git")
        assert read_commit(tmp_path) == UNKNOWN


@pytest.mark.spec("S2-54")
def test_the_registry_holds_the_commit_and_the_version_does_not(repository, tools_at):
    tools = tools_at(repository / "tools")
    tools.add("a")
    first = tools.build(project=repository)
    assert tools.document()["gitCommit"] == git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    second = tools.build(project=repository)
    assert tools.document()["gitCommit"] == git(repository, "rev-parse", "HEAD")
    assert (second.version, second.written) == (first.version, True)


@pytest.mark.spec("S2-54")
def test_the_registry_of_a_folder_outside_git_says_unknown(tools):
    tools.add("a")
    tools.build()
    assert tools.document()["gitCommit"] == UNKNOWN
