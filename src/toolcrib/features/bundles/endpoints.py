"""HTTP endpoints of bundles and of the tools in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.bundles.endpoint_handlers import BundleEndpoints, ToolEndpoints
from toolcrib.features.bundles.openapi import (
    BUNDLE_BODY,
    BUNDLE_LINKS,
    SCHEMAS,
    TOOL_BODY,
    TOOL_LINKS,
    WEATHER_BUNDLE,
    WEATHER_TOOL,
)
from toolcrib.model.access import Scope
from toolcrib.toolkit.http.contract import (
    INCLUDE_DISABLED,
    PAGE_SIZE,
    PAGE_TOKEN,
    QUESTION,
    SWITCH,
    TAGS,
    TEXT,
    TYPED,
    Body,
    Reply,
    closed,
    whole,
    words,
)
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable
from toolcrib.toolkit.http.etags import IF_MATCH, IF_NONE_MATCH, ONLY_NEW
from toolcrib.toolkit.http.places import BUNDLE, BUNDLE_PLACE, BUNDLES, TOOL, TOOL_PLACE, UUID7

if TYPE_CHECKING:
    from toolcrib.toolkit.http.endpoint import Host

SWITCH_BODY = Body(
    # Its handler looks at further keys itself.
    name="Switch",
    schema=closed(("isEnabled",), isEnabled=SWITCH),
    example={"isEnabled": False},
    open_keys=True,
)
BUNDLE_IDS = words("bundleIDs", "Only these bundles.", {**TEXT, "pattern": UUID7})
LIST_QUERY = (
    TAGS,
    INCLUDE_DISABLED,
    whole("recommendedPageSize", "How many, about; never more than 256.", 1),
    whole("pageSize", "Another word for recommendedPageSize.", 1, key="sameAsRecommendedPageSize"),
    PAGE_TOKEN,
)
BY_ID = "In the order of their ids. The size of a page is a recommendation."
COMMENTS = "The body may hold comments, `//` and `/* */`."
BUNDLE_NOW = Reply(description="The bundle as it is now.", schema="Bundle", headers=("ETag",), links=BUNDLE_LINKS)
UNCHANGED = Reply(description="It is as the client knows it.", headers=("ETag",))


def _bundle_endpoints(host: Host) -> BundleEndpoints:
    return BundleEndpoints(host.crib.bundles, host.threads)


def _tool_endpoints(host: Host) -> ToolEndpoints:
    return ToolEndpoints(host.crib.bundles, host.crib.wish_from_search, host.threads)


BUNDLE_ENDPOINTS = EndpointTable(
    tag="bundles",
    summary="Containers of tools, each with one switch.",
    make=_bundle_endpoints,
    places=(BUNDLE_PLACE,),
    schemas=SCHEMAS,
    endpoints=(
        Endpoint(
            name="listBundles",
            method="GET",
            path=BUNDLES,
            handler=BundleEndpoints.list,
            scope=Scope.READ,
            summary="List bundles.",
            description="In the order of their ids. What is being deleted is not shown.",
            query=(BUNDLE_IDS, INCLUDE_DISABLED, PAGE_SIZE, PAGE_TOKEN),
            replies={200: Reply(description="A page of bundles.", schema="BundlePage")},
        ),
        Endpoint(
            name="readBundle",
            method="GET",
            path=BUNDLE,
            handler=BundleEndpoints.read,
            scope=Scope.READ,
            summary="Read a bundle.",
            headers=(IF_NONE_MATCH,),
            refusals=(404,),
            replies={200: Reply(description="The bundle.", schema="Bundle", headers=("ETag",)), 304: UNCHANGED},
        ),
        Endpoint(
            name="putBundle",
            method="PUT",
            path=BUNDLE,
            handler=BundleEndpoints.put,
            scope=Scope.MANAGE,
            summary="Make a bundle, or replace what is said about it.",
            description=f"Its tools stay as they are. A bundle that is being deleted is kept again. {COMMENTS}",
            headers=(IF_MATCH, ONLY_NEW),
            body=Body(name="BundleBody", schema=BUNDLE_BODY, example=WEATHER_BUNDLE, comments=True, open_keys=True),
            refusals=(409, 412),
            replies={
                200: BUNDLE_NOW,
                201: Reply(
                    description="The new bundle.", schema="Bundle", headers=("ETag", "Location"), links=BUNDLE_LINKS
                ),
            },
        ),
        Endpoint(
            name="switchBundle",
            method="PATCH",
            path=BUNDLE,
            handler=BundleEndpoints.switch,
            scope=Scope.MANAGE,
            summary="Switch a bundle on or off, and with it all its tools.",
            headers=(IF_MATCH,),
            body=SWITCH_BODY,
            refusals=(404, 409, 412),
            replies={200: BUNDLE_NOW},
        ),
        Endpoint(
            name="deleteBundle",
            method="DELETE",
            path=BUNDLE,
            handler=BundleEndpoints.delete,
            scope=Scope.MANAGE,
            summary="Delete a bundle that holds no tools.",
            description="It can be had back for two days by putting it again.",
            headers=(IF_MATCH,),
            refusals=(404, 409, 412),
            replies={
                200: Reply(description="The bundle, with the time of its deletion.", schema="Bundle", headers=("ETag",))
            },
        ),
    ),
)

TOOL_ENDPOINTS = EndpointTable(
    tag="tools",
    summary="Tools in bundles: write, read, switch, delete, list, search.",
    make=_tool_endpoints,
    places=TOOL_PLACE,
    endpoints=(
        Endpoint(
            name="listToolsOfBundle",
            method="GET",
            path=f"{BUNDLE}/tools",
            handler=ToolEndpoints.list_one,
            scope=Scope.READ,
            summary="List the tools of one bundle.",
            description=BY_ID,
            query=LIST_QUERY,
            refusals=(404,),
            replies={200: Reply(description="A page of tools.", schema="ToolPage")},
        ),
        Endpoint(
            name="readTool",
            method="GET",
            path=TOOL,
            handler=ToolEndpoints.read,
            scope=Scope.READ,
            summary="Read a tool.",
            headers=(IF_NONE_MATCH,),
            refusals=(404,),
            replies={200: Reply(description="The tool.", schema="Tool", headers=("ETag",)), 304: UNCHANGED},
        ),
        Endpoint(
            name="putTool",
            method="PUT",
            path=TOOL,
            handler=ToolEndpoints.put,
            scope=Scope.MANAGE,
            summary="Make a version of a tool.",
            description=f"A version that exists is never changed: write another one, or delete it first. {COMMENTS}",
            headers=(IF_MATCH, ONLY_NEW),
            body=Body(name="ToolBody", schema=TOOL_BODY, example=WEATHER_TOOL, comments=True, open_keys=True),
            refusals=(404, 409, 412),
            replies={
                201: Reply(description="The new tool.", schema="Tool", headers=("ETag", "Location"), links=TOOL_LINKS)
            },
        ),
        Endpoint(
            name="switchTool",
            method="PATCH",
            path=TOOL,
            handler=ToolEndpoints.switch,
            scope=Scope.MANAGE,
            summary="Switch a tool on or off.",
            headers=(IF_MATCH,),
            body=SWITCH_BODY,
            refusals=(404, 409, 412),
            replies={200: Reply(description="The tool as it is now.", schema="Tool", headers=("ETag",))},
        ),
        Endpoint(
            name="deleteTool",
            method="DELETE",
            path=TOOL,
            handler=ToolEndpoints.delete,
            scope=Scope.MANAGE,
            summary="Delete a tool for good.",
            headers=(IF_MATCH,),
            refusals=(404, 409, 412),
            replies={204: Reply(description="It is gone.")},
        ),
        # The paths of the platform's document are relative to /tools, and its first word may be part of them or not.
        Endpoint(
            name="listTools",
            method="GET",
            path="/tools",
            aliases={"/tools/tools": "listToolsToo"},
            handler=ToolEndpoints.list,
            scope=Scope.READ,
            summary="List the tools of all bundles.",
            description=BY_ID,
            query=(BUNDLE_IDS, *LIST_QUERY),
            replies={200: Reply(description="A page of tools.", schema="ToolPage")},
        ),
        Endpoint(
            name="searchTools",
            method="GET",
            path="/tools/search",
            aliases={"/tools/tools/search": "searchToolsToo"},
            handler=ToolEndpoints.search,
            scope=Scope.READ,
            summary="Search the tools of all bundles.",
            description="By what was typed: beginnings of words before whole words before words that are nearly right, "
            "and of these the newest first. Or by a question in plain words, the most relevant first. One of the two.",
            query=(TYPED, QUESTION, INCLUDE_DISABLED, PAGE_SIZE, PAGE_TOKEN),
            replies={200: Reply(description="A page of tools, each with why it was found.", schema="FoundPage")},
        ),
    ),
)
endpoints = (BUNDLE_ENDPOINTS, TOOL_ENDPOINTS)
