"""A way to read one file of `.ai/tools`, from text."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from toolcrib import Kind, Tool, ToolError
from toolcrib.features.scripts.format import ScriptFile

ROOT = Path(".ai/tools")
FIELDS = {
    "tool_id": "deploy-service",
    "category": "deployment/kubernetes",
    "tool_type": "script",
    "version": '"1.0.0"',
    "description": "Deploy a service; fails if the cluster refuses",
    "executor_id": "python_runtime",
}
QUIET = {"timeout": "300", "documentation": "{examples: [Deploy to production]}", "outputs": "{type: string}"}


@pytest.fixture
def load() -> Callable[..., list[Tool]]:
    """Read a file that lies at a path below the root."""

    def load(name: str, text: str | bytes) -> list[Tool]:
        path = ROOT / name
        dialect = ScriptFile(ROOT)
        assert dialect.reads(path)
        return dialect.read(path, text if isinstance(text, bytes) else dedent(text).encode())

    return load


@pytest.fixture
def problems(load) -> Callable[..., list[str]]:
    """What is wrong with a file, without its path."""

    def problems(name: str, text: str | bytes) -> list[str]:
        with pytest.raises(ToolError) as caught:
            load(name, text)
        assert caught.value.kind is Kind.VALIDATION
        lines = caught.value.message.split("\n")
        assert all(line.startswith(f".ai/tools/{name}:") for line in lines)
        return [line.removeprefix(f".ai/tools/{name}:") for line in lines]

    return problems


def written(more: str, changes: dict[str, str | None]) -> str:
    fields = {**FIELDS, **QUIET, **changes}
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value is not None) + dedent(more)


@pytest.fixture
def describe(load) -> Callable[..., Tool]:
    """The tool of a YAML file with the required fields and some more; a field of None is left out."""

    def describe(more: str = "", **changes: str | None) -> Tool:
        (tool,) = load("deployment/kubernetes/deploy.yaml", written(more, changes))
        return tool

    return describe


@pytest.fixture
def describe_all(load) -> Callable[..., list[Tool]]:
    """All tools of such a file."""
    return lambda more="", **changes: load("deployment/kubernetes/deploy.yaml", written(more, changes))


@pytest.fixture
def faults(problems) -> Callable[..., list[str]]:
    """What is wrong with such a file: its first added line is the tenth."""
    return lambda more="", **changes: problems("deployment/kubernetes/deploy.yaml", written(more, changes))


@pytest.fixture
def warnings_of(describe_all) -> Callable[..., list[str]]:
    """What its author should know about such a file."""

    def warnings_of(more: str = "", **changes: str | None) -> list[str]:
        place = ".ai/tools/deployment/kubernetes/deploy.yaml:"
        return [warning.removeprefix(place) for warning in describe_all(more, **changes)[0].warnings]

    return warnings_of
