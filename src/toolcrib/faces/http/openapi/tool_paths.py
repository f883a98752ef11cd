"""The paths of tools in bundles."""

from __future__ import annotations

from toolcrib.faces.http.openapi.answers import answer
from toolcrib.faces.http.openapi.operations import operation

WEATHER_TOOL = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Weather report",
    "description": "Fetch the current weather of a city.",
    "type": "http",
    "isEnabled": True,
    "argSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "string"},
    "impl": {
        "method": "GET",
        "urlTemplate": "https://weather.example/v1/current.json?q=${city}",
        "headers": {"User-Agent": "MyApp/${version}"},
        "successCodes": [200],
        "timeoutMs": 10_000,
        "responseEncoding": "json",
        "extractExpr": "$.current.condition.text",
        "errorMode": "fail",
    },
    "tags": ["weather"],
}
SAME_TOOL = {
    "bundleID": "$request.path.bundleID",
    "toolSlug": "$request.path.toolSlug",
    "version": "$request.path.version",
}
LINKS: dict[str, object] = {
    name: {"operationId": operation_id, "parameters": SAME_TOOL}
    for name, operation_id in {
        "read": "readTool",
        "switch": "switchTool",
        "delete": "deleteTool",
        "invoke": "invokeTool",
    }.items()
}
PLACE = ("bundleID", "toolSlug", "version")
LIST_QUERY = ("tags", "includeDisabled", "recommendedPageSize", "sameAsRecommendedPageSize", "pageToken")
INVOKE = {"args": {"city": "Oslo"}}


def _list(name: str) -> dict[str, object]:
    return {
        "get": operation(
            name,
            "tools",
            "List the tools of all bundles.",
            scope="read",
            description="In the order of their ids. The size of a page is a recommendation.",
            parameters=("bundleIDs", *LIST_QUERY),
            answers={"200": answer("A page of tools.", "ToolPage")},
        )
    }


def _search(name: str) -> dict[str, object]:
    return {
        "get": operation(
            name,
            "tools",
            "Search the tools of all bundles.",
            scope="read",
            description="By what was typed: beginnings of words before whole words before words that are nearly right, "
            "and of these the newest first. Or by a question in plain words, the most relevant first. One of the two.",
            parameters=("q", "question", "includeDisabled", "pageSize", "pageToken"),
            answers={"200": answer("A page of tools, each with why it was found.", "FoundPage")},
        )
    }


def invoke(name: str) -> dict[str, object]:
    """The operation that calls a tool by its place."""
    return operation(
        name,
        "calls",
        "Call a tool.",
        scope="invoke",
        description="Arguments are checked against `argSchema` before anything runs, the value against `outputSchema`. "
        "No body means no arguments.",
        parameters=PLACE,
        refusals=(404, 409, 413),
        body="InvokeBody",
        needs_body=False,
        example=INVOKE,
        of_call=True,
        answers={"200": answer("What the call came to.", "CallResult")},
    )


TOOL_PATHS: dict[str, object] = {
    "/tools/bundles/{bundleID}/tools": {
        "get": operation(
            "listToolsOfBundle",
            "tools",
            "List the tools of one bundle.",
            scope="read",
            description="In the order of their ids. The size of a page is a recommendation.",
            parameters=("bundleID", *LIST_QUERY),
            refusals=(404,),
            answers={"200": answer("A page of tools.", "ToolPage")},
        )
    },
    "/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}": {
        "get": operation(
            "readTool",
            "tools",
            "Read a tool.",
            scope="read",
            parameters=(*PLACE, "ifNoneMatch"),
            refusals=(404,),
            answers={
                "200": answer("The tool.", "Tool", headers=("ETag",)),
                "304": answer("It is as the client knows it.", headers=("ETag",)),
            },
        ),
        "put": operation(
            "putTool",
            "tools",
            "Make a version of a tool.",
            scope="manage",
            description="A version that exists is never changed: write another one, or delete it first. The body may "
            "hold comments, `//` and `/* */`.",
            parameters=(*PLACE, "ifMatch", "onlyNew"),
            refusals=(404, 409, 412),
            body="ToolBody",
            example=WEATHER_TOOL,
            answers={"201": answer("The new tool.", "Tool", headers=("ETag", "Location"), links=LINKS)},
        ),
        "patch": operation(
            "switchTool",
            "tools",
            "Switch a tool on or off.",
            scope="manage",
            parameters=(*PLACE, "ifMatch"),
            refusals=(404, 409, 412),
            body="Switch",
            example={"isEnabled": False},
            answers={"200": answer("The tool as it is now.", "Tool", headers=("ETag",))},
        ),
        "delete": operation(
            "deleteTool",
            "tools",
            "Delete a tool for good.",
            scope="manage",
            parameters=(*PLACE, "ifMatch"),
            refusals=(404, 409, 412),
            answers={"204": answer("It is gone.")},
        ),
        "post": invoke("invokeToolHere"),
    },
    "/tools/bundles/{bundleID}/tools/{toolSlug}/version/{version}/invoke": {"post": invoke("invokeTool")},
    "/tools": _list("listTools"),
    "/tools/tools": _list("listToolsToo"),
    "/tools/search": _search("searchTools"),
    "/tools/tools/search": _search("searchToolsToo"),
}
