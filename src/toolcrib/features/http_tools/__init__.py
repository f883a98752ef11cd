"""HTTP tools: request templates, extraction, retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_positive, read_text, read_words, setting
from toolcrib.lib import __version__
from toolcrib.model.tool import Http

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


class HttpToolsSettings(Table, name="http_tools"):
    """What HTTP tools of bundles may reach and send."""

    hosts: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="hosts that HTTP tools of bundles may reach: `api.example.com`, `*.example.com`, either with a port",
    )
    version: str = setting(
        default="",
        read=read_text,
        opens=False,
        summary="what `${version}` means in HTTP tools; without one, the version of Toolcrib",
    )
    max_retries: int = setting(
        default=4,
        read=read_positive,
        opens=False,
        summary="how often an HTTP tool may retry a request, even if it allows more itself",
    )
    max_pages: int = setting(
        default=100,
        read=read_positive,
        opens=False,
        summary="how many pages of an answer an HTTP tool reads, even if it allows more itself",
    )
    max_cache_bytes: int = setting(
        default=10_000_000,
        read=read_positive,
        opens=False,
        summary="how many bytes the answers may have together that HTTP tools cache (`cache`)",
    )
    max_sent_bytes: int = setting(
        default=1_000_000, read=read_positive, opens=False, summary="how large a request of an HTTP tool may be"
    )
    max_response_bytes: int = setting(
        default=5_000_000, read=read_positive, opens=False, summary="how large an answer an HTTP tool reads"
    )


def register(plugins: Plugins) -> None:
    """Add the runner of HTTP tools; scripts have tools of the same kind, whose own runner sends their requests with it."""
    plugins.add_runner("http", "toolcrib.features.http_tools.runner:HttpRunner", given=_runner_parts, runs=Http)
    plugins.add_resource("http_requests", "toolcrib.features.http_tools.runner:HttpRunner", given=_runner_parts)
    plugins.add_resource("access_tokens", "toolcrib.infra.oauth.access_tokens:AccessTokens", given=_token_parts)
    plugins.add_resource(
        "added_hosts",
        "toolcrib.infra.egress.added_hosts:AddedHosts",
        given=lambda resources: {"data": resources.data.path, "record": resources.record},
    )
    plugins.add_check("toolcrib.features.http_tools.runner:check_hosts")
    plugins.add_screen("recipes")
    plugins.add_settings("http_tools", HttpToolsSettings)


def _runner_parts(resources: Resources) -> dict[str, object]:
    http_tools = resources.settings["http_tools"]
    return {
        "egress": lambda: resources.get("egress"),
        "hosts": http_tools.hosts,
        "added": resources.get("added_hosts"),
        "secrets": resources.data.secrets,
        "version": http_tools.version or __version__,
        "variable": resources.variable,
        "environment": resources.environment,
        "tokens": lambda: resources.get("access_tokens"),
        "max_retries": http_tools.max_retries,
        "max_pages": http_tools.max_pages,
        "max_cache_bytes": http_tools.max_cache_bytes,
        "max_sent_bytes": http_tools.max_sent_bytes,
        "max_response_bytes": http_tools.max_response_bytes,
    }


def _token_parts(resources: Resources) -> dict[str, object]:
    return {
        "egress": lambda: resources.get("egress"),
        "folder": resources.data.path,
        "masking": resources.data.secrets.masking,
    }
