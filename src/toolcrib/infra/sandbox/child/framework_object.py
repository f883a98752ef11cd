"""Find the function that a file gives to another framework, and call it as its author expects.

`binding` of the job says where it is (see features/ecosystems/tool_objects). What stands at that place of the syntax tree is
kept while the file runs, so that nothing depends on how a framework and its version wrap it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Mapping
    from typing import Any

KEEP = "__toolcrib_keep__"
# The classes of content, each with the attribute that holds it, and what makes content of media.
_CONTENT = {"TextContent": "text", "ToolOutputText": "text", "ToolReturn": "return_value"}
_MEDIA = ("to_image_content", "to_audio_content", "to_resource_content")
_PACKAGES = ("agents", "fastmcp", "mcp", "mcp_types", "pydantic_ai")
_LOGGING = ("critical", "debug", "error", "info", "log", "notice", "report_progress", "warning")


class FrameworkObject:
    """The function or object of one file."""

    def __init__(self, binding: Mapping[str, Any]) -> None:
        self._binding = binding
        self._kept: list[Any] = []

    @property
    def names(self) -> dict[str, object]:
        """The names that the compiled file uses beside its own."""
        return {KEEP: self._keep}

    def parse(self, code: bytes, path: str) -> ast.Module:
        """The file's syntax tree, which keeps what the binding names."""
        import ast

        tree = ast.parse(code, path)
        kind = self._binding["kind"]
        if kind == "decorated":
            _mark_function(tree, self._binding)
        elif kind == "made":
            _mark_call(tree, (self._binding["line"], self._binding["column"]))
        return ast.fix_missing_locations(tree)

    def function(self, module: Any) -> Any:
        """What does the work, found after the file was run."""
        binding = self._binding
        kind, name = binding["kind"], binding["name"]
        if kind == "function":
            return getattr(module, name)
        if kind == "class":
            found = _make(getattr(module, name), binding.get("valves", {}))
        elif self._kept:
            found = self._kept[-1]
        else:
            raise LookupError(f"{name} is not there after the file was run; put it on the file's first level")
        if "method" not in binding:
            return found
        _set_up(found)
        return getattr(found, binding["method"])

    def given(self) -> dict[str, object]:
        """What stands in for the arguments that the framework would inject."""
        return {name: _STAND_INS[kind]() for name, kind in self._binding.get("given", {}).items()}

    def fields(self, module: Any, arguments: dict[str, object]) -> dict[str, object] | None:
        """The arguments as the class makes them that describes them; None if there is none. Raises ValueError."""
        path = self._binding.get("fields")
        if not path:
            return None
        model: Any = module
        for name in path.split("."):
            model = getattr(model, name)
        if not hasattr(model, "__fields__"):
            return None
        made = model.model_validate(arguments) if hasattr(model, "model_validate") else model.parse_obj(arguments)
        known = type(made).model_fields if hasattr(model, "model_fields") else type(made).__fields__
        return {name: getattr(made, name) for name in known}

    def result(self, value: Any) -> object:
        """What the author wants the caller to see of a value."""
        if self._binding.get("first"):
            if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004 - content and artifact
                raise TypeError("content_and_artifact: return a tuple of two, the content and the artifact")
            value = value[0]
        if "tool" in self._binding and isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004 - content and its structure
            value = value[1]
        return _plain_content(value)

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value


def _mark_function(tree: ast.Module, binding: Mapping[str, Any]) -> None:
    """Have the function kept as it stands below the decorator of the framework."""
    import ast

    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if (node.name, node.lineno) == (binding["name"], binding["line"]):
            place = binding["decorator"]
            keeper = ast.copy_location(ast.Name(KEEP, ast.Load()), node.decorator_list[place])
            node.decorator_list.insert(place + 1, keeper)


def _mark_call(tree: ast.Module, place: tuple[int, int]) -> None:
    """Have the value kept of the call that begins there."""
    import ast

    for node in ast.walk(tree):
        # `Maker()` and `Maker().method()` begin at the same place; the maker is called by its bare name.
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if (node.lineno, node.col_offset) == place:
            made = ast.copy_location(ast.Call(node.func, node.args, node.keywords), node)
            node.func, node.args, node.keywords = ast.Name(KEEP, ast.Load()), [made], []
            return


def _make(kind: Any, values: Mapping[str, Any]) -> Any:
    """An object of a class of tools, with the settings that Open WebUI would give it."""
    valves = getattr(kind, "Valves", None)
    if valves is None:
        return kind()
    # The author's __init__ makes the valves, and may use them: it gets the operator's values too.
    if values:
        kind.Valves = staticmethod(lambda **own: _make_valves(valves, {**own, **values}))
    made = kind()
    if not hasattr(made, "valves"):
        made.valves = kind.Valves()
    kind.Valves = valves
    return made


def _make_valves(kind: Any, values: Mapping[str, Any]) -> Any:
    """The valves with these values; a refusal names fields and never a value, which may be a secret."""
    if not hasattr(kind, "__fields__") and not hasattr(kind, "__dataclass_fields__"):
        made = kind()
        for name, value in values.items():
            setattr(made, name, value)
        return made
    try:
        return kind(**values)
    except Exception as problem:  # noqa: BLE001 - foreign code: a model may refuse its values in any way
        errors = getattr(problem, "errors", None)
        refused = errors() if callable(errors) else []
        names = ", ".join(".".join(map(str, error["loc"])) for error in refused)
    raise ValueError(f"its Valves refuse {names or 'their values'}; change ecosystems.valves in toolcrib.toml")


def _set_up(made: Any) -> None:
    """Do what smolagents does before the first call."""
    if getattr(made, "is_initialized", True) is False and hasattr(made, "setup"):
        made.setup()


class _Done:
    """What a call returns that may be awaited."""

    def __await__(self) -> Any:
        return iter(())


class _Log:
    """Stands in for the Context of a server: what it is told is dropped."""

    def __getattr__(self, name: str) -> Any:
        if name in _LOGGING:
            return lambda *_, **__: _Done()
        raise AttributeError(f"there is no MCP client here, so Context has no {name}")


def _drop(*_: object, **__: object) -> _Done:
    return _Done()


_STAND_INS: dict[str, Callable[[], object]] = {"log": _Log, "emitter": lambda: _drop, "nothing": lambda: None}


def _plain_content(value: Any) -> object:
    """The text or value inside of the content objects that servers and agents return."""
    if isinstance(value, (list, tuple)) and value and any(map(_is_content, value)):
        parts = [_plain_content(item) for item in value]
        return parts[0] if len(parts) == 1 else parts
    if not _is_content(value):
        return value
    name = type(value).__name__
    if name in ("CallToolResult", "ToolResult"):
        return _server_result(value)
    if name in _CONTENT:
        return getattr(value, _CONTENT[name])
    makers = (getattr(value, method, None) for method in _MEDIA)
    return next((make() for make in makers if make is not None), value)


def _server_result(value: Any) -> object:
    structured = getattr(value, "structured_content", None) or getattr(value, "structuredContent", None)
    content = _plain_content(value.content)
    if getattr(value, "isError", False) or getattr(value, "is_error", False):
        raise RuntimeError(str(content))
    return content if structured is None else structured


def _is_content(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in _PACKAGES
