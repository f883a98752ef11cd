"""The OpenAPI document, as the server serves it."""

from __future__ import annotations

import json

from toolcrib import __version__


def test_the_openapi_document_is_the_one_that_is_pinned(tmp_path, served, golden):
    with served(tmp_path) as server:
        connection = server.connect()
        connection.request("GET", "/openapi.json")
        document = json.load(connection.getresponse())
        connection.close()
    # Everything but the version of the release.
    assert document["info"].pop("version") == __version__
    golden("openapi.json", json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
