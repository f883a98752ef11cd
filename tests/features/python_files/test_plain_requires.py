"""A plain file lists what it requires, and gets exactly that."""

from pathlib import Path

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.features.python_files.format import PlainFile

READS = '''\
{requires}
from pathlib import Path


def peek(path: str) -> str:
    """Read a file."""
    try:
        return Path(path).read_text()
    except OSError as problem:
        return type(problem).__name__
'''


def test_the_list_is_read_and_nothing_runs():
    (tool,) = PlainFile().read(
        Path("peek.py"), READS.format(requires='__requires__ = ["fs.read", "net.http"]').encode()
    )
    assert tool.requires == {"fs.read", "net.http"}
    (tool,) = PlainFile().read(Path("peek.py"), READS.format(requires="").encode())
    assert tool.requires == frozenset()


@pytest.mark.parametrize("written", ['"fs.read"', '["fs"]', "[1]", "names()", '["fs.read", "fs."]', "{1: 2}"])
def test_what_is_no_list_of_capabilities_is_refused_with_its_line(written):
    with pytest.raises(ToolError) as caught:
        PlainFile().read(Path("peek.py"), READS.format(requires=f"__requires__ = {written}").encode())
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.message == ('peek.py:1: __requires__: write a list of dotted names, such as ["fs.read"]')


@pytest.mark.parametrize(("requires", "seen"), [("", "PermissionError"), ('__requires__ = ["fs.read"]', "hello")])
async def test_the_workspace_is_seen_only_by_a_file_that_requires_it(project, requires, seen):
    (project / "toolcrib.toml").write_text("")
    (project / "data.txt").write_text("hello")
    (project / "tools" / "peek.py").write_text(READS.format(requires=requires))
    async with Crib(project) as crib:
        result = await crib.call("peek", path=str(project / "data.txt"))
        assert result.value == seen
        if requires:
            refused = await Crib(project, grants={"*": []}).call("peek", path="data.txt")
            assert refused.error.kind is Kind.CAPABILITY_MISSING
