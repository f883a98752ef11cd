"""A plug-in: tools written as text templates, what runs them, templates of its own, a rule that keeps texts short, and its setting."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter

from toolcrib import ALLOW, Call, Context, Kind, Tool, ToolError, Verdict, deny
from toolcrib.core.plugins import Plugins
from toolcrib.core.sources import ListedSource
from toolcrib.infra.settings import Table, read_positive, setting
from toolcrib.model.tool import Entry, Origin

DESCRIPTION = "template.txt"
SPACE = "templates"
PHRASES = {"greeting": b"Greet somebody.\nHello, {guest}!", "thanks": b"Thank somebody.\nThank you, {guest}!"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """How such a tool runs: what a runner needs to know, and nothing else."""

    kind = "template"

    text: str

    def identity(self) -> dict[str, object]:
        """What makes this another template; it goes into the tool's content hash."""
        return {"kind": self.kind, "text": self.text}


class TemplateFormat:
    """Reads templates: the first line describes the tool, the rest is its text with {names}.

    A template is a file `name.template`, a folder `name` that holds a `template.txt`, or a document `templates/name` of the
    store.
    """

    name = "template"

    def reads(self, path: Path) -> bool:
        return path.suffix == ".template" or path.name == DESCRIPTION or path.parts[0] == SPACE

    def read(self, path: Path, code: bytes) -> Iterable[Tool]:
        description, _, text = code.decode("utf-8").partition("\n")
        names = [name for _, name, _, _ in Formatter().parse(text) if name]
        if not all(name.isidentifier() for name in names):
            raise ToolError(Kind.VALIDATION, f"{path}: a name in braces is one word; write {{name}}")
        parameters = {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": sorted(set(names)),
            "additionalProperties": False,
        }
        yield Tool(
            name=path.parent.name if path.name == DESCRIPTION else path.stem,
            description=description,
            parameters=parameters,
            output_schema={"type": "string"},
            run=Template(text=text.strip()),
            origin=Origin(place=str(path)),
        )


class Phrases(ListedSource):
    """A source of tools: those that come with this package. Its rank puts them behind files and before built-in tools."""

    rank = 47
    bundles = ("phrases",)

    def entries(self, session: object = None) -> list[Entry]:
        read = TemplateFormat().read
        tools = (tool for name, text in PHRASES.items() for tool in read(Path(f"{name}.template"), text))
        return [Entry(tool=replace(tool, bundle="phrases")) for tool in tools]


class BoundTemplate:
    """One template, made ready to run."""

    is_async = False
    wants_context = False
    checks = False
    function = None

    def __init__(self, template: Template) -> None:
        self._template = template

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """A template refuses nothing before it runs."""

    def run(self, arguments: dict[str, object], context: Context | None) -> str:
        return self._template.text.format(**arguments)


class TemplateRunner:
    """Runs every tool of the kind."""

    kind = Template.kind

    def bind(self, tool: Tool) -> BoundTemplate:
        return BoundTemplate(tool.run)

    async def close(self) -> None:
        """Nothing was started."""


class TemplatesSettings(Table, name="templates"):
    """The table [templates] of toolcrib.toml."""

    max_letters: int = setting(
        default=1_000, read=read_positive, opens=False, summary="how long a text for a template may be"
    )


class ShortTexts:
    """Refuses long texts for templates."""

    name = "short_texts"

    def __init__(self, most: int) -> None:
        self._most = most

    def concerns(self, tool: Tool) -> bool:
        return tool.kind == Template.kind

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        for name, value in call.arguments.items():
            if isinstance(value, str) and len(value) > self._most:
                return deny(f"{name} is longer than {self._most} letters", rule=self.name, cure="shorten it")
        return ALLOW


def register(plugins: Plugins) -> None:
    """What the entry point names; called once when a Crib starts."""
    plugins.add_format(TemplateFormat(), suffixes=[".template"])
    plugins.add_format(TemplateFormat(), folder=DESCRIPTION)
    plugins.add_format(TemplateFormat(), stored=SPACE)
    plugins.add_source("phrases", lambda resources: [Phrases()])
    plugins.add_runner(TemplateRunner.kind, TemplateRunner())
    plugins.add_settings("templates", TemplatesSettings)
    plugins.add_rules("templates", lambda crib: [ShortTexts(crib.settings.table(TemplatesSettings).max_letters)])
