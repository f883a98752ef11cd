"""Drivers of the primitives that run in the host process: http_client and filesystem."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from toolcrib.features.scripts.chain import with_names
from toolcrib.features.scripts.http_config import SPELLED_OUT, read_config
from toolcrib.infra.files.jail import encode_text, list_items, read_text
from toolcrib.infra.secrets.secret import VariableMasking
from toolcrib.lib.document_fields import Report
from toolcrib.lib.run_part import PartKind, RunPart
from toolcrib.lib.system_tools import OPERATIONS
from toolcrib.lib.templates import Text, compile_template, look_up_in
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from toolcrib.features.http_tools.runner import BoundHttp, HttpRunner
    from toolcrib.features.scripts.chain import Order
    from toolcrib.infra.files.jail import Jail
    from toolcrib.lib.templates import Template
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Tool

CAPABILITY = "net."


class HttpDriver:
    """Sends the requests that the config of a chain describes."""

    def __init__(self, runner: HttpRunner) -> None:
        self._runner = runner
        self._bound: WeakKeyDictionary[Tool, tuple[tuple[Tool, ...], BoundHttp]] = WeakKeyDictionary()

    def check(self, order: Order, call: Call) -> object:
        """Refuse what can be seen without sending: capability, slots, names, variables, URL, headers and host."""
        _check_network_capability(order)
        return self._bind(order).check(dict(order.arguments), call)

    def preview(self, order: Order, call: Call) -> Iterable[RunPart]:
        """The requests, filled with the arguments."""
        return self._bind(order).preview(dict(order.arguments), call)

    async def run(self, order: Order, context: Context) -> Outcome:
        """Send the requests and read the answers."""
        return await self._bind(order).run(dict(order.arguments), context)

    def _bind(self, order: Order) -> BoundHttp:
        """The compiled requests, compiled again whenever an element of the chain has changed."""
        elements, bound = self._bound.get(order.tool, ((), None))
        if bound is None or elements != order.chain.elements:
            bound = self._compile(order)
            self._bound[order.tool] = (order.chain.elements, bound)
        return bound

    def _compile(self, order: Order) -> BoundHttp:
        if order.is_primitive:
            return self._runner.bind_run(order.tool, SPELLED_OUT, order.variable)
        report = Report()
        http = read_config(report, order.chain.config, order.tool.parameters)
        report.raise_problems()
        http = replace(http, hosts=_hosts_of(order))
        return self._runner.bind_run(order.tool, http, order.variable, place="config.")


def _check_network_capability(order: Order) -> None:
    if any(capability.startswith(CAPABILITY) for capability in order.tool.requires):
        return
    message = f"{order.tool.name} sends requests and requires no net capability; list net.http in its requires"
    raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": ["net.http"]})


def _hosts_of(order: Order) -> tuple[str, ...] | None:
    """The hosts of the first element of the chain that restricts them."""
    runs = (element.run for element in order.chain.elements)
    return next((run.hosts for run in runs if isinstance(run, Chained) and run.hosts is not None), None)


MAX_FILE_BYTES = 1_000_000
MAX_ITEMS = 5_000
READING = frozenset({"read", "list", "exists"})
WITH_CONTENT = frozenset({"write", "append"})
FILE_KEYS = ("operation", "path", "content")


@dataclass(frozen=True, slots=True)
class _Operation:
    """One file operation."""

    operation: str
    path: str
    data: bytes


class FilesystemDriver:
    """Does one operation per call; each needs its capability among what the called tool itself requires."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail
        self._acts: dict[str, Callable[[str, bytes], object]] = {
            "read": lambda path, _: read_text(jail, path, MAX_FILE_BYTES),
            "list": lambda path, _: list_items(jail, path, MAX_ITEMS),
            "exists": lambda path, _: jail.exists(path),
            "write": self._write,
            "append": self._append,
            "delete": self._delete,
            "make_folder": lambda path, _: {"path": path, "made": jail.make_folder(path)},
        }

    def check(self, order: Order, call: Call) -> None:
        """Refuse what can be seen without touching a file: slots, operation, capability, path and content."""
        _prepare(order, VariableMasking(order.variable))

    def preview(self, order: Order, call: Call) -> Iterator[RunPart]:
        """The operation, its path and what it writes."""
        order = with_names(order)
        errand = _prepare(order, VariableMasking(order.variable))
        data = errand.data if errand.operation in WITH_CONTENT else None
        yield RunPart(kind=PartKind.OPERATION, title=f"{errand.operation} {errand.path}", data=data)

    async def run(self, order: Order, context: Context) -> Outcome:
        """Run the operation and return its result."""
        masking = VariableMasking(order.variable)
        errand = _prepare(order, masking)
        try:
            # A change is synced, and judged by all repositories of the workspace: other calls go on meanwhile.
            act = self._acts[errand.operation]
            return Outcome(value=await asyncio.to_thread(act, errand.path, errand.data))
        except ToolError as error:
            raise masking.hide_error(error) from None

    def _write(self, path: str, data: bytes) -> object:
        self._jail.write(path, data)
        return {"path": path, "bytes": len(data)}

    def _append(self, path: str, data: bytes) -> object:
        self._jail.append(path, data)
        return {"path": path, "bytes": len(data)}

    def _delete(self, path: str, _: bytes) -> object:
        self._jail.delete(path)
        return {"path": path, "deleted": True}


def _prepare(order: Order, masking: VariableMasking) -> _Operation:
    try:
        request = _request_of(order, masking)
        operation = request.get("operation")
        if operation not in OPERATIONS:
            raise _refusal("operation", f"write one of {', '.join(OPERATIONS)}")
        _check_file_capability(order, str(operation))
        path = request.get("path")
        if not isinstance(path, str):
            raise _refusal("path", "write a path of the workspace as text")
        return _Operation(str(operation), path, _data_of(str(operation), path, request.get("content")))
    except ToolError as error:
        raise masking.hide_error(error) from None


def _data_of(operation: str, path: str, content: object) -> bytes:
    if operation not in WITH_CONTENT:
        return b""
    if not isinstance(content, str):
        raise _refusal("content", f"write the text to {operation}")
    return encode_text(path, content, MAX_FILE_BYTES)


def _request_of(order: Order, masking: VariableMasking) -> Mapping[str, object]:
    """The arguments of the call, overridden by what the author configured."""
    if order.is_primitive:
        return order.arguments
    config = order.chain.config
    unknown = sorted(set(config) - set(FILE_KEYS))
    if unknown:
        message = f"config: {', '.join(unknown)} is unknown to filesystem; write {', '.join(FILE_KEYS)} only"
        raise ToolError(Kind.VALIDATION, message)
    properties = order.tool.parameters.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    lookup = look_up_in(declared, order.arguments, order.values)
    given = {key: order.arguments[key] for key in FILE_KEYS if key in order.arguments}
    for key, value in config.items():
        template = compile_template(value)
        try:
            given[key] = template.render(lookup, masking.variable)
        except ToolError as error:
            raise error.replace(reason=f"config.{key}: {error.reason}") from None
        if key == "path":
            _refuse_climbing(template, str(given[key]))
    return given


def _refuse_climbing(template: Template, path: str) -> None:
    """Refuse `..` in a path that the author began; the jail checks one that is wholly the caller's."""
    text = template.document
    if isinstance(text, Text) and text.sole is None and ".." in path.replace("\\", "/").split("/"):
        message = 'config.path: a value leads up with ".." out of the folder that its author named; give another value'
        raise ToolError(Kind.VALIDATION, message)


def _check_file_capability(order: Order, operation: str) -> None:
    capability = "fs.read" if operation in READING else "fs.write"
    if capability in order.tool.requires:
        return
    message = f"{order.tool.name}: {operation} needs {capability}; list it in the tool's requires"
    raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": [capability]})


def _refusal(key: str, cure: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"filesystem: {key} is missing or unknown; {cure}")
