"""Turn the metadata of a script into tools, with warnings about bad practice."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.features.scripts.fields import read_forms, read_identity
from toolcrib.features.scripts.http_config import read_config
from toolcrib.features.scripts.metadata import MetadataReport
from toolcrib.features.scripts.optional_fields import read_options
from toolcrib.features.scripts.program_interface import Use, decide_use, read_program
from toolcrib.features.scripts.python_code import PROGRAM, choose_entry, demanded_names, does_nothing, missing_names
from toolcrib.features.scripts.schemas import checked
from toolcrib.features.scripts.sql_config import SQL_CLIENT, read_sql
from toolcrib.features.sql_tools.description import capabilities_of, side_effects_of
from toolcrib.features.sql_tools.rows import describe_output
from toolcrib.lib.python_declarations import read_docstring
from toolcrib.lib.python_hints import HintError, SyntaxHints, read_answer, read_parameters, writable
from toolcrib.lib.python_source import top_imports
from toolcrib.lib.schema import compile_schema
from toolcrib.lib.schema_structure import object_schema
from toolcrib.lib.system_tools import HTTP_CLIENT
from toolcrib.model.tool import REPEATABLE_METHODS, Chained, Convention, Origin, Script, Sql, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolcrib.features.scripts.fields import Form, Identity
    from toolcrib.features.scripts.metadata import Metadata
    from toolcrib.features.scripts.optional_fields import Options
    from toolcrib.features.scripts.python_code import EntryPoint
    from toolcrib.lib.positions import Steps
    from toolcrib.lib.python_source import AnyFunction

    Schema = dict[str, object]

SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
SAYS_HOW = re.compile(r"\b[\w-]+\.(?:py|js|mjs|cjs|sh|bash)\b", re.IGNORECASE)
SAYS_ERRORS = re.compile(r"\b(?:errors?|exceptions?|fails?|failures?|raises?|refuses?|invalid)\b", re.IGNORECASE)
MAX_TITLE = 200
BOUNDLESS = ("string", "integer", "float", "number")
CONSTRAINTS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"enum", "const", "format"}
)
# The capabilities that each executor requires.
IMPLIED = {"http_client": "net.http", "subprocess": "shell.execute", "bash": "shell.execute", "filesystem": "fs.read"}
SHELL = "shell.execute"
CALLED = frozenset({"script", "http", "subprocess", "docker", "filesystem", "sql"})
LIBRARY = "library"
RUNTIME = "runtime"
PRIMITIVE = "primitive"
SINK = "sink"
SCRIPT = "script"
PYTHON_RUNTIMES = frozenset({"python_runtime", "python"})
# Idempotent HTTP methods.
HTTP = "http"
SQL = "sql"
KINDS = {
    "http_client": HTTP,
    "subprocess": "subprocess",
    "docker": "docker",
    "filesystem": "filesystem",
    SQL_CLIENT: SQL,
}


def build_tools(metadata: Metadata, root: Path) -> list[Tool]:
    """The tools of a file below the root; raises one ToolError that lists all its problems."""
    report = MetadataReport(metadata)
    identity = read_identity(report, root)
    options = read_options(report)
    calls = [_call(report, identity, options, form) for form in _forms(report, identity)]
    for call in calls:
        _check_requests(report, identity, call)
    if not metadata.plain:
        warn_of_practices(report, identity, options, calls[0].kind)
    report.raise_problems()
    _check_examples(report, options, calls)
    report.raise_problems()
    tools = [_make_tool(report, identity, options, call) for call in calls]
    # Problems of the file are reported once, not once per action.
    return [replace(tools[0], warnings=tuple(report.warnings)), *tools[1:]]


def implied_capabilities(executor: str | None) -> frozenset[str]:
    """The capabilities that an executor requires, declared or not; the author declares the hosts of a request."""
    return frozenset({SHELL}) if IMPLIED.get(executor or "") == SHELL else frozenset()


def warn_of_practices(report: MetadataReport, identity: Identity, options: Options, kind: str) -> None:
    """Warn about bad practice."""
    _capabilities(report, identity, options)
    _parameters(report)
    if SAYS_HOW.search(identity.description):
        report.warn(("description",), "names a file, which says how it is done; say what the tool does")
    if kind in CALLED:
        _name(report, identity)
        _advice(report, options)
    if kind == "runtime" and identity.executor is None and not options.config.get("command"):
        report.warn(("config",), "a runtime without executor runs nothing; write config: {command: …}")


def _capabilities(report: MetadataReport, identity: Identity, options: Options) -> None:
    implied = IMPLIED.get(identity.executor or "")
    if implied is None:
        return
    group = implied if implied == SHELL else f"{implied.partition('.')[0]}."
    if not any(capability.startswith(group) for capability in options.requires):
        report.warn(("requires",), f"{identity.executor} needs {implied}, which is not listed; add it to requires")


def _name(report: MetadataReport, identity: Identity) -> None:
    if identity.name.isalnum():
        report.warn(("tool_id",), f"{identity.name!r} says little; name the action and its object, such as resize-pool")


def _advice(report: MetadataReport, options: Options) -> None:
    """One warning for all that is not documented."""
    fields = report.fields
    shown = options.documentation
    texts = (str(fields.get("description")), report.metadata.docstring, *shown.texts, str(options.metadata))
    missing = []
    if not (shown.texts or shown.examples):
        missing.append("examples")
    if not fields.keys() & {"outputs", "output_schema", "actions"} and not report.metadata.module:
        missing.append("outputs")
    if "timeout" not in fields:
        missing.append("a timeout")
    if not SAYS_ERRORS.search("\n".join(texts)):
        missing.append("the errors to expect")
    if missing:
        report.warn((), f"says nothing about {', '.join(missing)}; add documentation, outputs or timeout")


def _parameters(report: MetadataReport) -> None:
    for at, parameters, is_constrained in _lists(report.fields):
        entries = [(index, entry) for index, entry in enumerate(parameters) if isinstance(entry, dict)]
        for index, entry in entries:
            _parameter(report, (*at, index), entry)
        loose = [str(entry.get("name")) for _, entry in entries if _is_loose(entry)]
        if loose and not is_constrained:
            report.warn(at, f"nothing constrains {', '.join(loose[:20])}; add minimum, maximum, pattern or enum")


def _parameter(report: MetadataReport, at: Steps, entry: Mapping[str, object]) -> None:
    name = entry.get("name")
    if isinstance(name, str) and not SNAKE_CASE.fullmatch(name):
        report.warn((*at, "name"), f"{name[:80]!r} is not in snake_case; rename it")
    if not entry.get("description"):
        report.warn(at, "has no description; write what it means")
    if "required" not in entry:
        report.warn(at, "does not say whether it is required; write required: false")


def _is_loose(entry: Mapping[str, object]) -> bool:
    return entry.get("type") in BOUNDLESS and CONSTRAINTS.isdisjoint(entry)


def _lists(fields: Mapping[str, object]) -> Iterator[tuple[Steps, list[object], bool]]:
    """Every list of parameters, of the tool and of its actions, and whether a schema stands beside it."""
    actions = fields.get("actions")
    named: list[tuple[str | int, object]] = []
    if isinstance(actions, dict):
        named = [*actions.items()]
    elif isinstance(actions, list):
        named = [*enumerate(actions)]
    places: list[tuple[Steps, object]] = [((), fields), *((("actions", name), entry) for name, entry in named)]
    for at, written in places:
        parameters = written.get("parameters") if isinstance(written, dict) else None
        if isinstance(written, dict) and isinstance(parameters, list):
            yield (*at, "parameters"), parameters, "input_schema" in written


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """How one form of a tool is called."""

    form: Form
    kind: str
    entry: EntryPoint | None
    inputs: Schema
    outputs: Schema | None
    config: Mapping[str, object]
    statement: Sql | None = None


def _call(report: MetadataReport, identity: Identity, options: Options, form: Form) -> _Call:
    entry = None if identity.tool_type == LIBRARY else _entry(report, form)
    inputs, outputs = form.declared.inputs, form.declared.outputs
    if entry is not None and entry.function is not None:
        signed_inputs, signed_outputs = _signature(report, form, entry)
        inputs = signed_inputs if inputs is None else inputs
        outputs = outputs or signed_outputs
    use = Use() if entry is not PROGRAM or not _is_run(identity) else decide_use(report, options.config, form)
    entry = use.entry if entry is PROGRAM else entry
    inputs = use.inputs if inputs is None else inputs
    if inputs is None:
        # Without a declaration every argument is accepted.
        inputs = {"type": "object"} if identity.tool_type != LIBRARY else object_schema({})
    kind = _kind(identity, entry)
    if kind == SCRIPT and identity.executor in PYTHON_RUNTIMES and entry is PROGRAM:
        _warn_of_nothing(report, form)
    return _Call(
        form=form,
        kind=kind,
        entry=entry,
        inputs=inputs,
        outputs=outputs,
        config={**options.config, **use.config},
        statement=_statement(report, options, form, inputs) if kind == SQL else None,
    )


def _statement(report: MetadataReport, options: Options, form: Form, inputs: Schema) -> Sql:
    if report.metadata.language or form.action:
        report.refuse(("executor_id",), f"{SQL_CLIENT} runs one statement; describe it in a .yaml file of its own")
    return read_sql(report, options.config, inputs, options.hosts)


def _forms(report: MetadataReport, identity: Identity) -> list[Form]:
    """What can be called: as declared, or each sub-command of a program that declares nothing."""
    forms = read_forms(report, identity)
    is_program = _is_run(identity) and _entry(report, forms[0]) is PROGRAM
    program = read_program(report.metadata) if is_program else None
    if program is None or len(forms) > 1 or forms[0].action or forms[0].declared.inputs is not None:
        return forms
    if program.functions:
        return [
            replace(forms[0], name=name, description=part.summary or _spoken(name), function=name)
            for name, part in program.functions.items()
        ]
    if program.line is None or not program.line.actions:
        return forms
    is_kebab = "-" in identity.name or (not report.metadata.plain and "_" not in identity.name)
    joint = "-" if is_kebab else "_"
    return [
        replace(
            forms[0],
            name=f"{identity.name}{joint}{name}",
            description=line.summary or identity.description,
            action=name,
        )
        for name, line in program.line.actions.items()
    ]


def _spoken(name: str) -> str:
    """The name of a function as words."""
    return re.sub(r"[_$]+|(?<=[a-z0-9])(?=[A-Z])", " ", name).strip().capitalize()


def _is_run(identity: Identity) -> bool:
    """Whether a call runs the file; a library is listed, a runtime runs others."""
    return identity.tool_type not in {LIBRARY, RUNTIME, PRIMITIVE}


def _entry(report: MetadataReport, form: Form) -> EntryPoint | None:
    module = report.metadata.module
    if module is None:
        return PROGRAM if report.metadata.language else None
    try:
        return choose_entry(module, form.declared.names, form.action)
    except HintError as error:
        report.refuse_line(1, str(error))
        return PROGRAM


def _warn_of_nothing(report: MetadataReport, form: Form) -> None:
    """Warn about a file that would succeed without doing anything."""
    module = report.metadata.module
    if module is None or not does_nothing(module.body):
        return
    if form.action:
        function = form.action.replace("-", "_")
        text = f"nothing runs the action, so a call of it does nothing; write def {function}(…), or def main(action, …)"
        report.warn(form.at, text)
    else:
        report.warn_line(1, "nothing in the file runs, so a call of it does nothing; write def main(…)")


def _signature(report: MetadataReport, form: Form, entry: EntryPoint) -> tuple[Schema | None, Schema | None]:
    """What the signature says about arguments and answer; what the author declared besides is compared with it."""
    function, module = entry.function, report.metadata.module
    if function is None or module is None:
        return None, None
    hints = SyntaxHints(module)
    if entry.convention is Convention.PARAMS:
        return _whole(report, form, function, hints), None
    is_sink = entry.convention is Convention.SINK
    try:
        outputs = None if is_sink else read_answer(function, hints)
        if form.declared.inputs is not None:
            _compare(report, form, entry)
            return None, outputs
        docstring = read_docstring(ast.get_docstring(function, clean=False))
        inputs = read_parameters(function, hints, docstring, skip=entry.given)
    except (HintError, RecursionError) as error:
        text = str(error) if isinstance(error, HintError) else "nested too deeply; make it simpler"
        report.refuse_line(function.lineno, f"{function.name}: {text}")
        return None, None
    for warning in hints.warnings:
        report.warn_line(function.lineno, warning)
    if checked(report, form.at, inputs) is None or (outputs and checked(report, form.at, outputs) is None):
        return None, None
    return inputs, outputs


def _whole(report: MetadataReport, form: Form, function: AnyFunction, hints: SyntaxHints) -> Schema | None:
    """What the hint of a parameter that takes all arguments says about them; None if it names none."""
    first = [*function.args.posonlyargs, *function.args.args][0]
    if form.declared.inputs is not None or first.annotation is None:
        return None
    try:
        schema = hints.read(first.annotation)
    except (HintError, RecursionError):
        return None
    if hints.definitions or "properties" not in schema:
        return None
    return checked(report, form.at, schema)


def _compare(report: MetadataReport, form: Form, entry: EntryPoint) -> None:
    function, declared = entry.function, form.declared
    if function is None or declared.names is None or entry.convention is Convention.SINK:
        return
    if missing := missing_names(function, declared.names):
        text = f"{entry.name} does not take {', '.join(missing)}, so calls that give it fail; add it to the function"
        report.warn_line(function.lineno, text)
    if unsure := [name for name in demanded_names(function) if name not in declared.sure | entry.given]:
        text = f"{entry.name} demands {', '.join(unsure)}, which a call may leave out; give it a default"
        report.warn_line(function.lineno, text)


def _kind(identity: Identity, entry: EntryPoint | None) -> str:
    if identity.tool_type == LIBRARY:
        return LIBRARY
    if entry is not None and entry.convention is Convention.SINK:
        return SINK
    if identity.tool_type == RUNTIME:
        return RUNTIME
    if identity.tool_type == PRIMITIVE and identity.executor is None:
        return PRIMITIVE
    return KINDS.get(identity.executor or "", SCRIPT)


def _check_requests(report: MetadataReport, identity: Identity, call: _Call) -> None:
    """Report what is wrong with requests, as far as the file itself describes them; an executor may add to its config."""
    if call.kind == HTTP and identity.executor == HTTP_CLIENT and not {"url", "calls"}.isdisjoint(call.config):
        read_config(report, call.config, call.inputs)


def _check_examples(report: MetadataReport, options: Options, calls: list[_Call]) -> None:
    by_action = {call.form.action: call for call in calls}
    for example in options.documentation.examples:
        call = by_action.get(example.action)
        if call is None:
            report.warn(example.at, f"there is no action {example.action!r:.80}; name one of {', '.join(by_action)}")
        elif not compile_schema(call.inputs).is_valid(example.arguments):
            report.warn((*example.at, "arguments"), f"{call.form.name} would refuse them; correct them")


def _tool(report: MetadataReport, identity: Identity, options: Options, call: _Call) -> Tool:
    metadata, form = report.metadata, call.form
    run = Chained(
        kind=call.kind,
        tool_type=identity.tool_type,
        executor=identity.executor,
        folder=metadata.path.parent,
        config=call.config,
        script=_script(metadata, call.entry or PROGRAM) if metadata.language else None,
        action=form.action,
        hosts=options.hosts,
    )
    examples = [known.arguments for known in options.documentation.examples if known.action == form.action]
    return Tool(
        name=form.name,
        description=form.description,
        parameters=call.inputs,
        output_schema=call.outputs,
        run=run,
        version=identity.version,
        display_name=_title(options),
        category=identity.category,
        source_type=identity.tool_type,
        idempotent=options.limits.retry is not None or _is_repeatable(options, call),
        requires=options.requires | implied_capabilities(identity.executor),
        limits=options.limits,
        cost=options.cost,
        tags=options.tags,
        documentation=options.documentation.to_text(),
        examples=tuple(examples),
        metadata=_metadata(report, options, call),
        deprecated=options.metadata.get("deprecated") is True,
        origin=Origin(place=str(metadata.path), line=metadata.line_of(form.at)),
    )


def _make_tool(report: MetadataReport, identity: Identity, options: Options, call: _Call) -> Tool:
    """The tool of one form; a statement needs no chain of executors."""
    tool = _tool(report, identity, options, call)
    return tool if call.statement is None else _with_statement(tool, call.statement)


def _with_statement(tool: Tool, run: Sql) -> Tool:
    timeout_ms = min(run.timeout_ms, tool.limits.timeout_ms or run.timeout_ms)
    return replace(
        tool,
        run=run,
        output_schema=tool.output_schema or describe_output(run),
        side_effects=side_effects_of(run),
        idempotent=not run.write,
        requires_confirmation=run.write and run.confirm,
        requires=tool.requires | capabilities_of(run),
        limits=replace(tool.limits, timeout_ms=timeout_ms),
    )


def _title(options: Options) -> str:
    title = options.metadata.get("title")
    return title.strip()[:MAX_TITLE] if isinstance(title, str) else ""


def _is_repeatable(options: Options, call: _Call) -> bool:
    """Whether it is an HTTP request that may be repeated; not if the caller chooses the method."""
    return call.kind == HTTP and str(options.config.get("method") or "GET").upper() in REPEATABLE_METHODS


def _script(metadata: Metadata, entry: EntryPoint) -> Script:
    return Script(
        path=metadata.path,
        code=metadata.code,
        language=metadata.language,
        entry=entry.name,
        convention=entry.convention,
        imports=() if metadata.module is None else top_imports(metadata.module),
    )


def _metadata(report: MetadataReport, options: Options, call: _Call) -> Schema:
    """The metadata that people read: of the author, and what is known of the tool."""
    known = dict(options.metadata)
    function = None if call.entry is None else call.entry.function
    docstring = report.metadata.docstring or (writable(ast.get_docstring(function) or "") if function else "")
    if docstring:
        known.setdefault("docstring", docstring)
    if report.fields.keys() >= {"outputs", "output_schema"}:
        known.setdefault("outputs", report.fields["outputs"])
    return known
