"""Metadata is found in every language, without running anything of it."""

import json

import pytest

PARAMETERS = [
    {"name": "city", "type": "string", "required": True, "description": "Where", "minLength": 1},
    {"name": "days", "type": "integer", "required": False, "default": 3, "description": "How long", "minimum": 1},
]
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where", "minLength": 1},
        "days": {"type": "integer", "description": "How long", "minimum": 1, "default": 3},
    },
    "required": ["city"],
    "additionalProperties": False,
}
FACTS = {
    "version": "1.2.3",
    "tool_type": "script",
    "executor_id": "my_runtime",
    "category": "weather",
    "description": "Look up the weather; fails without a station",
}
MORE = {
    "requires": ["net.http", "fs.read"],
    "tags": ["sky", "sun"],
    "timeout": 30,
    "config": {"command": "x", "env": {"A": "1"}},
    "hosts": ["api.example.com"],
    "metadata": {"author": "me", "deprecated": True},
    "retry_policy": {"max_attempts": 3, "initial_delay": 0.5},
    "cost": {"per_invocation": 0.01},
    "documentation": {"url": "https://example.com", "examples": ["Rome"]},
    "outputs": {"type": "string"},
    "parameters": PARAMETERS,
}


def as_python() -> str:
    names = {name: f"__{name}__" for name in {**FACTS, **MORE}} | {"description": "__tool_description__"}
    return (
        "".join(f"{names[name]} = {value!r}\n" for name, value in {**FACTS, **MORE}.items())
        + "def main(city, days=3): ...\n"
    )


def as_javascript() -> str:
    lines = [f" * @{name} {value}\n" for name, value in FACTS.items()]
    lines += [f" * @{name} {json.dumps(value)}\n" for name, value in MORE.items()]
    return "#!/usr/bin/env node\n'use strict';\n// A line\n/**\n * Prose.\n *\n" + "".join(lines) + " */\nmain();\n"


def as_bash(form: str) -> str:
    lines = [form.format(name, value) for name, value in FACTS.items()]
    lines += [form.format(name, json.dumps(value)) for name, value in MORE.items()]
    return "#!/bin/bash\n# Prose about it.\n\n" + "".join(lines) + "\nset -e\n# tool_id: no-more\n"


def as_yaml() -> str:
    return json.dumps({"tool_id": "get-weather", **FACTS, **MORE})


def as_toml() -> str:
    return """
tool_id = "get-weather"
version = "1.2.3"
tool_type = "script"
executor_id = "my_runtime"
category = "weather"
description = "Look up the weather; fails without a station"
requires = ["net.http", "fs.read"]
tags = ["sky", "sun"]
timeout = 30
hosts = ["api.example.com"]
outputs = {type = "string"}
config = {command = "x", env = {A = "1"}}
metadata = {author = "me", deprecated = true}
retry_policy = {max_attempts = 3, initial_delay = 0.5}
cost = {per_invocation = 0.01}
documentation = {url = "https://example.com", examples = ["Rome"]}

[[parameters]]
name = "city"
type = "string"
required = true
description = "Where"
minLength = 1

[[parameters]]
name = "days"
type = "integer"
required = false
default = 3
description = "How long"
minimum = 1
"""


FILES = {
    "get-weather.py": as_python(),
    "get-weather.js": as_javascript(),
    "get-weather.mjs": as_javascript(),
    "get-weather.cjs": as_javascript(),
    "get-weather.sh": as_bash("# {}: {}\n"),
    "get-weather.bash": as_bash("# @{} {}\n"),
    "weather.yaml": as_yaml(),
    "weather.yml": as_yaml(),
    "weather.json": as_yaml(),
    "weather.toml": as_toml(),
}


@pytest.mark.spec("S3-01", "S3-12", "S3-13", "S3-43")
@pytest.mark.parametrize("name", FILES)
def test_every_language_says_the_same(name, load):
    (tool,) = load(f"weather/{name}", FILES[name])
    assert (tool.name, tool.version, tool.category, tool.source_type) == ("get-weather", "1.2.3", "weather", "script")
    assert tool.description == FACTS["description"]
    assert tool.run.executor == "my_runtime"
    assert tool.parameters == SCHEMA
    assert tool.output_schema == {"type": "string"}
    assert tool.requires == {"net.http", "fs.read"}
    assert tool.tags == ("sky", "sun")
    assert tool.limits.timeout_ms == 30_000
    assert tool.limits.retry.initial_delay == 0.5
    assert tool.run.config == MORE["config"]
    assert tool.run.hosts == ("api.example.com",)
    assert tool.cost.per_invocation == 0.01
    assert tool.documentation == "See https://example.com\n\nExamples:\n- Rome"
    assert tool.metadata == {"author": "me", "deprecated": True}
    assert tool.warnings == ()
    assert (tool.run.script is None) == name.startswith("weather.")
