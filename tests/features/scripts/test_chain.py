import pytest

from sample_tools import host_tool
from toolcrib import Kind, ToolError
from toolcrib.features.scripts.chain import MAX_CHAIN, resolve


def names_of(chain):
    return [element.name for element in chain.elements]


@pytest.mark.spec("S3-58")
def test_a_script_is_resolved_through_its_runtime_to_a_primitive(bench):
    chain = resolve(bench.tool(executor="python_runtime"), bench.find)
    assert names_of(chain) == ["sample", "python_runtime", "subprocess"]
    assert chain.primitive == "subprocess"


def test_python_is_another_name_for_the_python_runtime(bench):
    assert names_of(resolve(bench.tool(executor="python"), bench.find))[1] == "python_runtime"


@pytest.mark.spec("S3-10")
def test_an_executor_that_does_not_exist_is_named(bench):
    with pytest.raises(ToolError, match="sample: there is no executor 'rubby'") as caught:
        resolve(bench.tool(executor="rubby"), bench.find)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert caught.value.details == {"executor": "rubby"}


def test_a_circle_is_refused_with_the_way_round(bench):
    bench.tool("a", "b", kind="runtime")
    bench.tool("b", "a", kind="runtime")
    with pytest.raises(ToolError, match=r"in a circle \(sample → a → b → a\)") as caught:
        resolve(bench.tool(executor="a"), bench.find)
    assert caught.value.kind is Kind.CIRCULAR_DEPENDENCY


def test_a_runtime_that_names_itself_is_a_circle(bench):
    bench.tool("a", "a", kind="runtime")
    with pytest.raises(ToolError) as caught:
        resolve(bench.tool(executor="a"), bench.find)
    assert caught.value.kind is Kind.CIRCULAR_DEPENDENCY


def stack(bench, height):
    for level in range(height):
        executor = "subprocess" if level == 0 else f"r{level - 1}"
        bench.tool(f"r{level}", executor, kind="runtime", requires=())
    return bench.tool(executor=f"r{height - 1}", requires=())


def test_a_chain_of_the_greatest_depth_is_followed(bench):
    assert len(resolve(stack(bench, MAX_CHAIN - 1), bench.find).elements) == MAX_CHAIN + 1


def test_a_deeper_chain_is_refused(bench):
    with pytest.raises(ToolError, match="more than 10 elements") as caught:
        resolve(stack(bench, MAX_CHAIN), bench.find)
    assert caught.value.kind is Kind.CHAIN_TOO_DEEP


def test_a_chain_never_leads_up_into_a_space_that_comes_first(bench):
    bench.tool("mine", None, kind="runtime", bundle="project", config={"command": "cat"})
    with pytest.raises(ToolError, match="no executor 'mine' in its space or below"):
        resolve(bench.tool(executor="mine", bundle="user"), bench.find)


def test_a_runtime_of_the_project_takes_the_place_of_ours(bench):
    own = bench.tool("python_runtime", None, kind="runtime", config={"command": "cat"}, requires=())
    chain = resolve(bench.tool(executor="python_runtime"), bench.find)
    assert chain.elements[1] is own
    assert chain.config == {"command": "cat"}


def test_a_primitive_of_the_platforms_name_without_an_executor_means_the_platforms(bench):
    bench.tool("subprocess", None, kind="primitive", config={"command": "cat"})
    chain = resolve(bench.tool(executor="subprocess"), bench.find)
    assert names_of(chain) == ["sample", "subprocess"]
    assert (chain.primitive, chain.config) == ("subprocess", {})


def test_a_primitive_of_another_name_without_an_executor_runs_nothing(bench):
    bench.tool("quantum", None, kind="primitive", config={"command": "cat"})
    with pytest.raises(ToolError, match="only the platform's own primitives have none") as caught:
        resolve(bench.tool(executor="quantum"), bench.find)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


@pytest.mark.spec("S3-59")
def test_a_runtime_without_an_executor_is_bound_to_a_process_by_its_command(bench):
    bench.tool("ruby", None, kind="runtime", config={"command": "ruby"}, requires=())
    assert names_of(resolve(bench.tool(executor="ruby"), bench.find)) == ["sample", "ruby", "subprocess"]


@pytest.mark.spec("S3-59")
def test_a_runtime_without_executor_and_command_runs_nothing(bench):
    bench.tool("ruby", None, kind="runtime", requires=())
    with pytest.raises(ToolError, match="ruby: nothing executes it; write the command that it starts") as caught:
        resolve(bench.tool(executor="ruby"), bench.find)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


@pytest.mark.spec("S3-50")
def test_a_script_without_an_executor_runs_nowhere(bench):
    with pytest.raises(ToolError, match="sample: nothing executes it; name its executor_id"):
        resolve(bench.tool(executor=None, config={"command": "cat"}), bench.find)


def test_only_runtimes_and_primitives_are_executors(bench):
    bench.tool("other", "subprocess", config={"command": "cat"})
    with pytest.raises(ToolError, match="other runs no other tool, it is a script"):
        resolve(bench.tool(executor="other"), bench.find)


def test_a_function_of_the_host_is_no_executor(bench):
    bench.tools.insert(0, host_tool("other", bundle="project"))
    with pytest.raises(ToolError, match="other runs no other tool, it is a function"):
        resolve(bench.tool(executor="other"), bench.find)


def test_an_executor_that_is_switched_off_is_not_used(bench):
    bench.disabled["node_runtime"] = "the operator said so"
    with pytest.raises(ToolError, match="its executor node_runtime is disabled: the operator said so") as caught:
        resolve(bench.tool(executor="node_runtime"), bench.find)
    assert caught.value.kind is Kind.DISABLED


def test_nor_is_the_primitive_under_a_runtime_that_names_none(bench):
    bench.tool("ruby", None, kind="runtime", config={"command": "ruby"}, requires=())
    bench.disabled["subprocess"] = "no programs here"
    with pytest.raises(ToolError, match="ruby: its executor subprocess is disabled: no programs here"):
        resolve(bench.tool(executor="ruby"), bench.find)


def test_a_primitive_of_the_project_is_not_put_under_a_runtime_that_names_none(bench):
    bench.tool("subprocess", None, kind="primitive")
    bench.tool("ruby", None, kind="runtime", config={"command": "ruby"}, requires=())
    assert resolve(bench.tool(executor="ruby"), bench.find).elements[-1].bundle == "system"


@pytest.mark.spec("S3-14", "S3-55")
def test_what_a_runtime_requires_its_tools_must_list(bench):
    bench.tool("sender", None, kind="runtime", config={"command": "cat"}, requires={"net.http", "fs.read"})
    with pytest.raises(ToolError, match="its executor sender requires fs.read, net.http; list them") as caught:
        resolve(bench.tool(executor="sender"), bench.find)
    assert caught.value.kind is Kind.CAPABILITY_MISSING
    assert caught.value.details == {"missing": ["fs.read", "net.http"]}
    assert resolve(bench.tool("other", "sender", requires={"net.http", "fs.read"}), bench.find)


def test_a_runtime_that_ends_in_a_process_does_not_ask_for_the_shell(bench):
    assert resolve(bench.tool(executor="python_runtime", requires=()), bench.find)


def test_the_tool_has_the_last_word_and_variables_are_merged_one_by_one(bench):
    runtime = {"command": "cat", "args": ["-a"], "env": {"A": "1", "B": "1"}, "image": "x"}
    bench.tool("base", None, kind="runtime", config=runtime, requires=())
    tool = bench.tool(executor="base", config={"args": ["-b"], "env": {"B": "2", "C": "2"}})
    assert resolve(tool, bench.find).config == {
        "command": "cat",
        "args": ["-b"],
        "env": {"A": "1", "B": "2", "C": "2"},
        "image": "x",
    }


@pytest.mark.spec("S3-30", "S3-31")
def test_a_list_of_names_means_variables_of_the_host(bench):
    tool = bench.tool(config={"command": "cat", "env": ["KUBECONFIG", "TOKEN"]})
    assert resolve(tool, bench.find).config["env"] == {"KUBECONFIG": "${KUBECONFIG}", "TOKEN": "${TOKEN}"}


@pytest.mark.parametrize("written", ["A=1", ["A=1"], [1], {1: "x"}, ["${A}"], 5])
def test_variables_that_are_neither_are_refused(bench, written):
    with pytest.raises(ToolError, match=r"sample: config\.env: write a mapping"):
        resolve(bench.tool(config={"command": "cat", "env": written}), bench.find)


def test_an_edited_executor_counts_at_the_next_call(bench):
    old = bench.tool("base", None, kind="runtime", config={"command": "cat"}, requires=())
    tool = bench.tool(executor="base")
    assert resolve(tool, bench.find).config["command"] == "cat"
    bench.tools.remove(old)
    bench.tool("base", None, kind="runtime", config={"command": "tac"}, requires=())
    assert resolve(tool, bench.find).config["command"] == "tac"
