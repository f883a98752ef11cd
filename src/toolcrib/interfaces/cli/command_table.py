"""Every command of the program by its name: the lazy reference of its Click command, and the summary that help shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": ("toolcrib.interfaces.cli.commands:list_", "List the tools."),
    "show": ("toolcrib.interfaces.cli.commands:show", "Show everything about a tool."),
    "call": ("toolcrib.interfaces.cli.commands:call", "Call a tool."),
    "explain": ("toolcrib.interfaces.cli.commands:explain", "Say why a call would run or not."),
    "run": ("toolcrib.interfaces.cli.commands:run_file", "List or call the tools of a Python file."),
    "result": ("toolcrib.interfaces.cli.commands:result", "Print the rest of a large result."),
    "version": ("toolcrib.interfaces.cli.commands:version", "Print the version."),
    "completion": ("toolcrib.interfaces.cli.program:completion", "Print the completion script of a shell."),
    "init": ("toolcrib.interfaces.cli.project:init", "Write a project with a first tool and its test."),
    "check": ("toolcrib.interfaces.cli.health:check", "Report what is wrong with the tools."),
    "doctor": ("toolcrib.interfaces.cli.health:doctor", "Show how everything is set up here."),
    "costs": ("toolcrib.interfaces.cli.usage:costs", "Sum up what the calls of this project cost."),
    "latency": ("toolcrib.interfaces.cli.usage:latency", "Show how long the calls of this project took."),
    "serve": ("toolcrib.interfaces.http.commands:serve", "Serve the tools over HTTP."),
    "secret": ("toolcrib.features.access.commands:secret", "Keep secrets for HTTP tools."),
    "token": ("toolcrib.features.access.commands:token", "Let others use the server."),
    "bundle": ("toolcrib.features.bundles.commands:bundle", "Keep tools in bundles."),
    "search": ("toolcrib.features.bundles.commands:search", "Find tools by what is typed."),
    "enable": ("toolcrib.features.bundles.commands:enable", "Switch a tool or a bundle on."),
    "disable": ("toolcrib.features.bundles.commands:disable", "Switch a tool or a bundle off."),
    "publish": ("toolcrib.features.depots.commands:publish", "Publish a tool to a depot."),
    "pull": ("toolcrib.features.depots.commands:pull", "Pull a tool from a depot."),
    "depot": ("toolcrib.features.depots.commands:depot", "Look into a depot, and make keys to sign with."),
    "doc": ("toolcrib.features.exports.commands:doc", "Print the whole documentation of a tool."),
    "prompt": ("toolcrib.features.exports.commands:prompt", "Print what a system prompt says of the tools of a mode."),
    "export": ("toolcrib.features.exports.commands:export", "Print the tools as a model provider takes them."),
    "new": ("toolcrib.features.folders.commands:new", "Write a tool folder that passes the build, and its test."),
    "build": ("toolcrib.features.folders.commands:build", "Check every tool folder and write the registry."),
    "registry": (
        "toolcrib.features.folders.commands:registry",
        "Show which registry is loaded, and whether it is stale.",
    ),
    "request": ("toolcrib.features.requests.commands:request", "Ask for a tool that does not exist yet."),
    "experiments": (
        "toolcrib.features.requests.commands:experiments",
        "List what waits for tools, and what waits no more.",
    ),
    "builder": ("toolcrib.features.requests.commands:builder", "Have requested tools made, proved and published."),
    "demo": ("toolcrib.features.requests.commands:demo", "See it work."),
    "sink": ("toolcrib.features.scripts.commands:sink", "Stream lines of standard input to a sink."),
    "prepare": ("toolcrib.features.scripts.commands:prepare", "Install what a Python script asks for."),
    "test": ("toolcrib.features.testing.commands:test", "Run what tools show as examples, and their recorded cases."),
}
