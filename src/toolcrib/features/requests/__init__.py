"""Requests for missing tools: documents, queues, makers, the Builder, the gate and built packages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.model.errors import Cure, Kind, SettingsError, ToolError
from toolcrib.model.tool import MEGABYTE

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources
    from toolcrib.infra.secrets.secret import Secret

QUEUE_FILE = "queue.sqlite3"


def register(plugins: Plugins) -> None:
    """Add built packages as tools, the service that Crib uses, queues and makers."""
    plugins.add_format("toolcrib.features.requests.format:BuiltPackageFormat", folder="tool.json")
    plugins.add_resource("requests", "toolcrib.features.requests.service:RequestService")
    plugins.add_queue("", "toolcrib.features.requests.queues.sqlite:EmbeddedQueue", given=_for_file_queue)
    plugins.add_queue("redis", "toolcrib.features.requests.queues.redis:RedisQueue", given=_for_redis_queue)
    plugins.add_maker("person", "toolcrib.features.requests.delivery:PersonMaker", given=lambda _: {})
    plugins.add_maker("command", "toolcrib.features.requests.command_maker:CommandMaker", given=_for_command_maker)
    plugins.add_maker("openai", "toolcrib.features.requests.openai_maker:OpenAIMaker", given=_for_openai_maker)
    plugins.add_screen("requests")
    plugins.add_endpoints("toolcrib.features.requests.endpoints:endpoints")
    plugins.add_command(
        "request", "toolcrib.features.requests.commands:request", "Request a tool that does not exist yet."
    )
    plugins.add_command(
        "experiments",
        "toolcrib.features.requests.commands:experiments",
        "List the experiments that wait or waited for a tool.",
    )
    plugins.add_command(
        "builder", "toolcrib.features.requests.commands:builder", "Have requested tools made, proved and published."
    )
    plugins.add_command("demo", "toolcrib.features.requests.commands:demo", "See it work.")
    plugins.add_settings("requests", "toolcrib.features.requests.settings:RequestsSettings")
    plugins.add_settings("queue", "toolcrib.features.requests.settings:QueueSettings")
    plugins.add_settings("builder", "toolcrib.features.requests.settings:BuilderSettings")


def _for_file_queue(resources: Resources) -> dict[str, object]:
    return {"path": resources.data.folder() / QUEUE_FILE}


def _for_redis_queue(resources: Resources) -> dict[str, object]:
    queue = resources.settings["queue"]
    password = _secret(resources, "queue.secret", queue.secret)
    return {
        "url": queue.url,
        "password": "" if password is None else password.reveal(),
        "requests": queue.requests,
        "ready": queue.ready,
        "hash_prefix": queue.hash,
        "original": queue.original,
    }


def _for_command_maker(resources: Resources) -> dict[str, object]:
    settings, home = resources.settings, resources.environment.get("HOME", "")
    builder = settings["builder"]
    return {
        "sandbox": resources.get("sandbox"),
        "workspace_policy": resources.get("workspace_policy"),
        "command": builder.command,
        "find": lambda command: _find_program(resources, command),
        "egress": lambda: resources.get("egress"),
        "project": [place for place in (settings.root, settings.workspace) if place is not None],
        "hidden": [Path(home)] if home.startswith("/") else [],
        "hosts": builder.hosts,
        "variables": builder.variables,
        "variable": lambda name: _variable(resources, name),
        "disk_bytes": builder.disk_mb * MEGABYTE,
    }


def _for_openai_maker(resources: Resources) -> dict[str, object]:
    builder = resources.settings["builder"]
    if not builder.url:
        raise SettingsError("builder.url names no endpoint; write the one that the maker openai should ask")
    return {
        "egress": lambda: resources.get("egress"),
        "url": builder.url,
        "model": builder.model,
        "key": _secret(resources, "builder.key", builder.key),
    }


def _find_program(resources: Resources, command: str) -> object:
    """A program of the operator: on the search path, or at its absolute path."""
    named = [str(Path(command).parent)] if command.startswith("/") else []
    places = os.pathsep.join([resources.environment.get("PATH", ""), *named])
    trees = tuple(resources.get("script_trees").values())
    return resources.make("host_commands", search_path=places, roots=trees).installed(command)


def _variable(resources: Resources, name: str) -> str | None:
    """A variable of the host, or a secret, by its name."""
    if name in resources.environment:
        return resources.environment[name]
    secret = resources.data.secrets.get(name)
    return None if secret is None else secret.reveal()


def _secret(resources: Resources, setting: str, name: str) -> Secret | None:
    """The secret that a setting names; None if it names none, or an empty one."""
    if not name:
        return None
    secret = resources.data.secrets.get(name)
    if secret is None:
        where = resources.settings.where(setting)
        raise ToolError(
            Kind.AUTH, f"there is no secret {name!r}, which {where} names", cure=Cure(f"run: crib secret set {name}")
        )
    return secret if secret.reveal() else None
