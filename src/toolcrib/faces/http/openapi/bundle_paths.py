"""The paths of bundles."""

from __future__ import annotations

from toolcrib.faces.http.openapi.answers import answer
from toolcrib.faces.http.openapi.operations import operation

WEATHER_BUNDLE = {
    "slug": "weather",
    "displayName": "Weather",
    "isEnabled": True,
    "description": "What the sky is up to.",
}
SAME_BUNDLE = {"bundleID": "$request.path.bundleID"}
LINKS: dict[str, object] = {
    "read": {"operationId": "readBundle", "parameters": SAME_BUNDLE},
    "switch": {"operationId": "switchBundle", "parameters": SAME_BUNDLE},
    "delete": {"operationId": "deleteBundle", "parameters": SAME_BUNDLE},
    "putTool": {"operationId": "putTool", "parameters": SAME_BUNDLE},
}
WRITTEN = answer("The bundle as it is now.", "Bundle", headers=("ETag",), links=LINKS)

BUNDLE_PATHS: dict[str, object] = {
    "/tools/bundles": {
        "get": operation(
            "listBundles",
            "bundles",
            "List bundles.",
            scope="read",
            description="In the order of their ids. What is being deleted is not shown.",
            parameters=("bundleIDs", "includeDisabled", "pageSize", "pageToken"),
            answers={"200": answer("A page of bundles.", "BundlePage")},
        )
    },
    "/tools/bundles/{bundleID}": {
        "get": operation(
            "readBundle",
            "bundles",
            "Read a bundle.",
            scope="read",
            parameters=("bundleID", "ifNoneMatch"),
            refusals=(404,),
            answers={
                "200": answer("The bundle.", "Bundle", headers=("ETag",)),
                "304": answer("It is as the client knows it.", headers=("ETag",)),
            },
        ),
        "put": operation(
            "putBundle",
            "bundles",
            "Make a bundle, or replace what is said about it.",
            scope="manage",
            description="Its tools stay as they are. A bundle that is being deleted is kept again. The body may hold "
            "comments, `//` and `/* */`.",
            parameters=("bundleID", "ifMatch", "onlyNew"),
            refusals=(409, 412),
            body="BundleBody",
            example=WEATHER_BUNDLE,
            answers={
                "200": WRITTEN,
                "201": answer("The new bundle.", "Bundle", headers=("ETag", "Location"), links=LINKS),
            },
        ),
        "patch": operation(
            "switchBundle",
            "bundles",
            "Switch a bundle on or off, and with it all its tools.",
            scope="manage",
            parameters=("bundleID", "ifMatch"),
            refusals=(404, 409, 412),
            body="Switch",
            example={"isEnabled": False},
            answers={"200": WRITTEN},
        ),
        "delete": operation(
            "deleteBundle",
            "bundles",
            "Delete a bundle that holds no tools.",
            scope="manage",
            description="It can be had back for two days by putting it again.",
            parameters=("bundleID", "ifMatch"),
            refusals=(404, 409, 412),
            answers={"200": answer("The bundle, with the time of its deletion.", "Bundle", headers=("ETag",))},
        ),
    },
}
