import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.scripts import host_drivers
from toolcrib.lib import system_tools
from toolcrib.lib.schema import check_parameters, compile_schema


def named(name):
    return next(tool for tool in system_tools.system_tools() if tool.name == name)


@pytest.mark.spec("S3-57", "S3-11")
def test_the_system_space_holds_the_primitives_and_runtimes():
    tools = system_tools.system_tools()
    assert {tool.name: (tool.kind, tool.run.executor) for tool in tools} == {
        "subprocess": ("primitive", None),
        "http_client": ("primitive", None),
        "filesystem": ("primitive", None),
        "python_runtime": ("runtime", "subprocess"),
        "node_runtime": ("runtime", "subprocess"),
        "bash": ("runtime", "subprocess"),
        "docker": ("runtime", "subprocess"),
    }
    assert {(tool.bundle, tool.version, str(tool.origin)) for tool in tools} == {("system", "1.0.0", "toolcrib:1")}


def test_they_are_always_the_same_objects():
    assert all(
        one is other for one, other in zip(system_tools.system_tools(), system_tools.system_tools(), strict=True)
    )


@pytest.mark.spec("S3-65")
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "subprocess",
            {"command": "ls", "args": ["-l"], "env": {"A": "1"}, "cwd": "x"},
            {"command": "ls", "shell": True},
        ),
        ("subprocess", {"command": "ls"}, {"args": ["ls"]}),
        ("subprocess", {"command": "ls"}, {"command": "ls", "env": {"A": 1}}),
        ("http_client", {"url": "https://x.example"}, {"method": "GET"}),
        ("http_client", {"url": "https://x.example", "body": [1]}, {"url": "https://x.example", "method": "BREW"}),
        ("filesystem", {"operation": "read", "path": "a"}, {"operation": "format", "path": "a"}),
        ("filesystem", {"operation": "write", "path": "a", "content": "b"}, {"operation": "read"}),
    ],
)
def test_primitives_have_exact_closed_schemas(name, good, bad):
    parameters = named(name).parameters
    check_parameters(parameters, name)
    validator = compile_schema(parameters)
    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


@pytest.mark.spec("S3-65")
def test_each_primitive_stands_behind_its_capability():
    assert named("subprocess").requires == {"shell.execute"}
    assert named("http_client").requires == {"net.http"}
    assert named("filesystem").requires == {"fs.read", "fs.write"}
    assert named("bash").requires == {"shell.execute"}


def test_the_operations_are_those_that_the_driver_knows():
    assert set(system_tools.OPERATIONS) == set(host_drivers.OPERATIONS)


@pytest.mark.parametrize("name", ["python_runtime", "node_runtime", "bash", "docker"])
def test_a_runtime_of_ours_is_not_called_but_named(bench, name):
    with pytest.raises(ToolError, match=f"{name} runs other tools; name it as their executor_id") as caught:
        bench.check(named(name))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
