"""A Node that does not use the proxy reaches nothing; that is told before it is tried."""

import os

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.programs.node_runtime import CHUNK_BYTES, explain

FETCH = "fetch('http://example.com/').then((answer) => console.log(answer.status))"


@pytest.fixture
def node(bench, tmp_path):
    """A file that looks like a Node of some version, first on the search path."""

    def node(version, *, before=1000):
        path = tmp_path / "bin" / "node"
        path.parent.mkdir(exist_ok=True)
        words = (
            b"" if version is None else b"https://nodejs.org/download/release/v%s/node-v%s.tar.gz" % (version, version)
        )
        path.write_bytes(b"\x7fELF" + bytes(before) + words + b"\0")
        path.chmod(0o755)
        bench.search_path = f"{path.parent}:{os.environ['PATH']}"
        return path

    return node


@pytest.fixture
def check(bench):
    def check(code=FETCH, requires=("net.http",)):
        tool = bench.file("look.js", code, "node_runtime", language="javascript", requires=requires)
        bench.check(tool)

    return check


@pytest.mark.parametrize("version", ["20.20.2", "18.0.0", "22.20.9", "23.11.0"])
def test_a_node_that_does_not_use_the_proxy_is_refused_with_its_version(node, check, version):
    path = node(version.encode())
    with pytest.raises(ToolError) as caught:
        check()
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert caught.value.message == (
        f"look needs Node 22.21, or 24 or newer to use the proxy, its only way to the network; {path} is {version}"
    )


@pytest.mark.parametrize("version", [b"22.21.0", b"24.0.0", b"25.1.0", None])
def test_any_other_is_taken(node, check, version):
    node(version)
    check()


@pytest.mark.parametrize("before", [CHUNK_BYTES - 40 + shift for shift in range(0, 60, 7)])
def test_the_version_is_found_in_every_place_that_may_hold_it(node, check, before):
    node(b"20.20.2", before=before)
    with pytest.raises(ToolError, match=r"is 20\.20\.2"):
        check()


def test_without_a_network_any_node_will_do(node, check):
    node(b"20.20.2")
    check(requires=())


def test_a_script_that_may_use_the_proxy_itself_is_not_refused(bench, node, check):
    node(b"20.20.2")
    check("const { HTTP_PROXY } = process.env")
    (bench.folder / "node_modules").mkdir()
    check()


def test_a_failure_of_such_a_script_says_what_may_be_the_reason(node):
    error = ToolError(Kind.TRANSIENT, "look ended with exit code 1", retryable=True, details={"exitCode": 1})
    told = explain(error, str(node(b"20.20.2")))
    assert told.message == (
        "look ended with exit code 1 (Node 20.20.2 does not use the proxy by itself; Node 22.21, or 24 or newer does)"
    )
    assert (told.kind, told.retryable, told.details) == (error.kind, True, {"exitCode": 1})
    assert explain(error, str(node(b"24.1.0"))) is error
    assert explain(error, "/nowhere/node") is error
