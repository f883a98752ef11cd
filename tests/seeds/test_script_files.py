"""Files with metadata: the document's four complete examples and every block of it load as they stand."""

from pathlib import Path

import pytest

from toolcrib import Cost, RetryPolicy
from toolcrib.features.scripts.format import ScriptFile
from toolcrib.lib.schema import compile_schema
from toolcrib.lib.yaml import read_yaml

FIXTURES = Path(__file__).parent / "fixtures"
TOOLS = FIXTURES / "ai_tools"
BLOCKS = FIXTURES / "metadata_blocks"
MINIMAL = {
    "tool_id": "tool_id: minimal-tool\n",
    "category": "category: deployment\n",
    "tool_type": "tool_type: script\n",
    "version": 'version: "1.0.0"\n',
    "description": "description: Do what it says\n",
    "executor_id": "executor_id: python_runtime\n",
}
FOLDERS = {"category.yaml": "deployment/kubernetes", "category_2.yaml": "deployment/kubernetes"}


def load(name: str):
    path = TOOLS / name
    (tool,) = ScriptFile(TOOLS).read(path, path.read_bytes())
    return tool


def load_block(*names, **changes):
    """The tools of a minimal file into which blocks are merged."""
    texts = [(BLOCKS / name).read_text() for name in names]
    given = {key for text in texts for key in read_yaml(text).value}
    rest = "".join(line for name, line in {**MINIMAL, **changes}.items() if name not in given)
    folder = next((FOLDERS[name] for name in names if name in FOLDERS), "deployment")
    return ScriptFile(TOOLS).read(TOOLS / folder / "deploy.yaml", (rest + "".join(texts)).encode())


def names_in(path: Path) -> str:
    return path.name


def test_nothing_is_lost_from_the_examples():
    assert len([*BLOCKS.iterdir()]) == 25
    assert sorted(path.name for path in TOOLS.rglob("*.*")) == [
        "file_sink.py",
        "hello_node.js",
        "hello_world.py",
        "mcp_http.yaml",
    ]


class TestTheExamples:
    @pytest.mark.spec("S3-39", "S3-12")
    def test_a_greeting_in_python(self):
        tool = load("utility/hello_world.py")
        assert (tool.name, tool.version, tool.category) == ("hello_world", "1.0.1", "utility")
        assert tool.description == "Say hello to someone with a personalized greeting message"
        assert (tool.kind, tool.source_type, tool.run.executor) == ("script", "python", "python_runtime")
        assert tool.behaviour is None
        assert tool.parameters == {
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "World", "description": "The name to greet (default: World)"}
            },
            "required": [],
            "additionalProperties": False,
        }
        assert tool.output_schema == {"type": "string"}
        assert not compile_schema(tool.parameters).is_valid({"name": 1})
        assert (tool.run.script.entry, tool.run.script.convention) == ("main", "keywords")
        assert tool.metadata["docstring"].startswith("Say hello to someone.\n")

    @pytest.mark.spec("S3-40", "S3-13")
    def test_a_greeting_in_javascript(self):
        tool = load("utility/hello_node.js")
        assert (tool.name, tool.version, tool.category) == ("hello_node", "1.0.0", "utility")
        assert tool.description == "Say hello to someone with a personalized greeting message"
        assert (tool.kind, tool.source_type, tool.run.executor) == ("script", "javascript", "node_runtime")
        name = {"type": ["string", "number"], "description": "Name to greet", "default": "World"}
        assert tool.parameters == {
            "type": "object",
            "properties": {"name": name},
            "required": [],
            "additionalProperties": False,
        }
        assert (tool.run.script.language, tool.run.script.convention) == ("javascript", "argv")
        assert tool.run.script.code == (TOOLS / "utility/hello_node.js").read_bytes()

    @pytest.mark.spec("S3-41")
    def test_a_call_over_http(self):
        tool = load("mcp/mcp_http.yaml")
        assert (tool.name, tool.kind, tool.source_type) == ("mcp_http", "http", "http")
        assert tool.requires == {"net.call"}
        assert tool.run.config == {
            "method": "POST",
            "url": "{url}",
            "headers": {"Content-Type": "application/json"},
            "body": {"jsonrpc": "2.0", "id": "{request_id}", "method": "{rpc_method}", "params": "{rpc_params}"},
        }
        arguments = compile_schema(tool.parameters)
        assert arguments.is_valid({"url": "https://example.com", "rpc_method": "tools/call", "rpc_params": {}})
        assert not arguments.is_valid({"rpc_method": "tools/call", "rpc_params": {}})
        assert not arguments.is_valid({"url": "https://example.com", "rpc_method": "x", "rpc_params": "{}"})

    @pytest.mark.spec("S3-42")
    def test_a_sink_for_events(self):
        tool = load("sinks/file_sink.py")
        assert (tool.name, tool.kind, tool.source_type, tool.run.executor) == ("file_sink", "sink", "runtime", "python")
        assert (tool.run.script.entry, tool.run.script.convention) == ("FileSink", "sink")
        assert tool.run.script.imports == ("json", "pathlib", "typing")
        assert tool.parameters["required"] == ["path"]
        assert tool.parameters["properties"]["flush_every"] == {"type": "integer", "default": 10}

    @pytest.mark.parametrize(
        "name", ["utility/hello_world.py", "utility/hello_node.js", "mcp/mcp_http.yaml", "sinks/file_sink.py"]
    )
    def test_an_underscore_in_a_name_is_their_own_exception_to_the_rule(self, name):
        assert any("is not in kebab-case" in warning for warning in load(name).warnings)


class TestTheBlocks:
    @pytest.mark.spec("S3-01")
    @pytest.mark.parametrize("path", sorted(BLOCKS.iterdir()), ids=names_in)
    def test_each_is_yaml(self, path):
        assert isinstance(read_yaml(path.read_bytes()).value, dict)

    @pytest.mark.parametrize("path", sorted(BLOCKS.iterdir()), ids=names_in)
    def test_each_makes_a_minimal_tool_that_loads(self, path):
        assert load_block(path.name)

    def test_all_of_them_make_one_tool(self):
        optional = (
            *(
                "requires",
                "parameters",
                "outputs",
                "actions",
                "tags",
                "config",
                "input_schema",
                "output_schema",
                "timeout",
            ),
            *("retry_policy", "cost", "documentation", "metadata"),
        )
        found = load_block(*(f"{name}.yaml" for name in optional))
        assert [tool.name for tool in found] == ["minimal-tool", "minimal-tool-deploy", "minimal-tool-rollback"]

    @pytest.mark.spec("S3-05", "S3-06", "S3-07", "S3-08", "S3-09", "S3-10")
    def test_the_required_fields(self):
        names = ("tool_id", "category", "tool_type", "version", "description", "executor_id")
        (tool,) = load_block(*(f"{name}.yaml" for name in names))
        assert (tool.name, tool.category, tool.version) == ("deploy-service", "deployment/kubernetes", "1.0.0")
        assert tool.description == "Deploy service to Kubernetes cluster with rolling updates"
        assert (tool.run.tool_type, tool.run.executor) == ("script", "python_runtime")
        assert load_block("category_3.yaml")[0].category == "deployment"

    @pytest.mark.spec("S3-15", "S3-49")
    def test_the_capabilities(self):
        (tool,) = load_block("requires.yaml")
        assert tool.requires == {"rye.execute.spawn.thread", "rye.execute", "fs.write"}

    @pytest.mark.spec("S3-28")
    def test_the_actions(self):
        deploy, rollback = load_block("actions.yaml")
        assert (deploy.run.action, deploy.description) == ("deploy", "Deploy service")
        assert compile_schema(deploy.parameters).is_valid({"service_name": "a"})
        assert not compile_schema(rollback.parameters).is_valid({"service_name": "a"})

    def test_the_two_configurations(self):
        (tool,) = load_block("config.yaml", executor_id="executor_id: subprocess\n")
        assert (tool.kind, tool.requires) == ("subprocess", {"shell.execute"})
        assert tool.run.config["env"] == {"KUBECONFIG": "/etc/kubernetes/config", "LOG_LEVEL": "INFO"}
        (tool,) = load_block("config_2.yaml", executor_id="executor_id: docker\n")
        assert (tool.kind, tool.run.config["env"]) == ("docker", ["KUBECONFIG", "AWS_CREDENTIALS"])

    @pytest.mark.spec("S3-34", "S3-35", "S3-36")
    def test_the_limits(self):
        (tool,) = load_block("timeout.yaml", "retry_policy.yaml", "cost.yaml")
        assert tool.limits.timeout_ms == 300_000
        assert tool.limits.retry == RetryPolicy(
            max_attempts=3, backoff="exponential", initial_delay=1, max_delay=60, multiplier=2
        )
        assert tool.cost == Cost(per_invocation=0.01, per_minute=0.05, estimated_duration=60, currency="USD")

    @pytest.mark.spec("S3-37", "S3-38", "S3-29")
    def test_what_people_read(self):
        (tool,) = load_block("documentation.yaml", "metadata.yaml", "tags.yaml")
        assert "https://docs.example.com/tools/deploy" in tool.documentation
        assert "- Scale service replicas" in tool.documentation
        assert tool.metadata["maintainer"] == "ops@example.com"
        assert not tool.deprecated
        assert tool.tags == ("kubernetes", "deployment", "rolling-update", "cloud")

    @pytest.mark.spec("S3-50", "S3-59", "S3-60")
    @pytest.mark.parametrize("kind", ["runtime", "library"])
    def test_a_type_without_executor(self, kind):
        (tool,) = load_block(f"{kind}.yaml")
        assert (tool.kind, tool.run.executor) == (kind, None)
