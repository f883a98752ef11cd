"""The table of frameworks whose files are read: what makes a function a tool there, and where its name and texts are.

One line of the table says all there is to know of a framework. A name counts if it was imported from one of its modules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

EMITTER = "__event_emitter__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Framework:
    """How a framework marks tools.

    `decorators` are functions that make a tool of the function below them. `makers` are classes whose objects have
    `methods` that do so, as decorators or called with a function; `lists` are those of them that take `tools=[…]`.
    `wrappers` are calls that make a tool of a function. `bases` are the classes of tools, `calls` their methods that do the
    work, first choice first. `names`, `texts`, `switches` and `confirms` are the words in which a call says the name, the
    description, whether it is offered, and whether a person is asked.
    `injected` are hints and notes of parameters that the framework fills in itself, and `context_first` the methods (by their class) whose
    first parameter it fills in for any hint; `offered` are the attributes of such an object that are there without it.
    """

    title: str
    modules: frozenset[str]
    decorators: frozenset[str] = frozenset()
    makers: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    bases: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()
    names: tuple[str, ...] = ("name",)
    texts: tuple[str, ...] = ("description",)
    switches: frozenset[str] = frozenset()
    confirms: frozenset[str] = frozenset()
    injected: frozenset[str] = frozenset()
    context_first: frozenset[str] = frozenset()
    offered: frozenset[str] = frozenset()
    small_letters: bool = False
    promises: bool = False


# The methods of a server's Context that tell a client something and answer nothing.
LOGGING = frozenset({"critical", "debug", "error", "info", "log", "notice", "report_progress", "warning"})

LANGCHAIN = Framework(
    title="LangChain",
    modules=frozenset({"langchain", "langchain_classic", "langchain_community", "langchain_core"}),
    decorators=frozenset({"tool"}),
    wrappers=frozenset({"StructuredTool", "StructuredTool.from_function", "Tool", "Tool.from_function"}),
    bases=frozenset({"BaseTool", "StructuredTool"}),
    calls=("_run", "_arun"),
    names=("name", "name_or_callable"),
    injected=frozenset(
        {
            *(
                "InjectedState",
                "InjectedStore",
                "InjectedToolArg",
                "InjectedToolCallId",
                "RunnableConfig",
                "ToolRuntime",
            ),
            *("AsyncCallbackManagerForToolRun", "CallbackManagerForToolRun", "BaseStore"),
        }
    ),
)
FASTMCP = Framework(
    title="FastMCP",
    modules=frozenset({"fastmcp"}),
    makers=frozenset({"FastMCP"}),
    methods=frozenset({"add_tool", "tool"}),
    lists=frozenset({"FastMCP"}),
    wrappers=frozenset({"Tool.from_function", "FunctionTool.from_function"}),
    switches=frozenset({"enabled"}),
    injected=frozenset({"Context", "CurrentContext", "Depends"}),
    offered=LOGGING,
    promises=True,
)
MCP_SDK = replace(
    FASTMCP,
    title="MCP SDK",
    modules=frozenset({"mcp"}),
    makers=frozenset({"FastMCP", "MCPServer"}),
    lists=frozenset({"FastMCP", "MCPServer"}),
)
SMOLAGENTS = Framework(
    title="smolagents",
    modules=frozenset({"smolagents"}),
    decorators=frozenset({"tool"}),
    bases=frozenset({"Tool"}),
    calls=("forward",),
)
CREWAI = Framework(
    title="CrewAI",
    modules=frozenset({"crewai", "crewai_tools"}),
    decorators=frozenset({"tool"}),
    bases=frozenset({"BaseTool"}),
    calls=("_run",),
    small_letters=True,
)
OPENAI_AGENTS = Framework(
    title="openai-agents",
    modules=frozenset({"agents"}),
    decorators=frozenset({"function_tool"}),
    wrappers=frozenset({"function_tool"}),
    names=("name_override",),
    texts=("description_override",),
    switches=frozenset({"is_enabled"}),
    confirms=frozenset({"needs_approval"}),
    injected=frozenset({"RunContextWrapper", "ToolContext"}),
)
PYDANTIC_AI = Framework(
    title="pydantic-ai",
    modules=frozenset({"pydantic_ai"}),
    makers=frozenset({"Agent", "FunctionToolset"}),
    methods=frozenset({"add_function", "add_tool", "tool", "tool_plain"}),
    lists=frozenset({"Agent", "FunctionToolset"}),
    wrappers=frozenset({"Tool"}),
    switches=frozenset({"prepare"}),
    confirms=frozenset({"requires_approval"}),
    injected=frozenset({"RunContext"}),
    context_first=frozenset({"Agent.tool"}),
)
OPEN_WEBUI = Framework(title="Open WebUI", modules=frozenset())

# The packages of modules, for files that import them without declaring packages.
PACKAGES = {
    "agents": "openai-agents",
    "crewai": "crewai",
    "crewai_tools": "crewai-tools",
    "fastmcp": "fastmcp",
    "langchain": "langchain",
    "langchain_classic": "langchain-classic",
    "langchain_community": "langchain-community",
    "langchain_core": "langchain-core",
    "langgraph": "langgraph",
    "mcp": "mcp",
    "mcp.server.fastmcp": "mcp<2",
    "pydantic": "pydantic",
    "pydantic_ai": "pydantic-ai-slim",
    "smolagents": "smolagents",
}

FRAMEWORKS = (LANGCHAIN, FASTMCP, MCP_SDK, SMOLAGENTS, CREWAI, OPENAI_AGENTS, PYDANTIC_AI)


def framework_of(full_name: str) -> Framework | None:
    """The framework that a name was imported from."""
    top = full_name.partition(".")[0]
    return next((framework for framework in FRAMEWORKS if top in framework.modules), None)


def ends_in(full_name: str, endings: frozenset[str]) -> str:
    """The ending of a qualified name; empty if it has none of these. Modules move between versions, names stay."""
    words = full_name.split(".")
    for count in (2, 1):
        if len(words) > count and (ending := ".".join(words[-count:])) in endings:
            return ending
    return ""
