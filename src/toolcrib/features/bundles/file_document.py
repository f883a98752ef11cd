"""Read documents of tools that are files of the project; their bundle is that of their folder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.features.bundles.definition import SAMPLE_ID, StoredAddress, build_tool, read_tool_id
from toolcrib.features.bundles.format import read_fields
from toolcrib.lib.document_fields import Fields, Report
from toolcrib.lib.yaml import read_yaml
from toolcrib.model.tool import Http

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.model.tool import Tool


class FileDocument:
    """Reads a document that could be stored in a bundle, as JSON with comments or YAML."""

    name = "document"

    def reads(self, path: Path) -> bool:
        """Any file of the suffixes of documents."""
        return True

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tool of the document; none if it describes no arguments, as documents of tools do."""
        place = str(path)
        if path.suffix == ".json":
            fields = read_fields(code, place)
        else:
            document = read_yaml(code, place)
            values = document.value if isinstance(document.value, dict) else {}
            fields = Fields(Report(place, document.line), values)
        if "argSchema" not in fields:
            return []
        fields.require({"slug": '"weather"', "version": '"v1"'})
        # The id of the bundle that it was stored in means nothing here.
        stored_in = str(fields.values.get("bundleID", SAMPLE_ID))
        address = StoredAddress(bundle_id=stored_in, slug=fields.text("slug"), version=fields.text("version"))
        # With the id that it was stored under it would be taken for the stored tool; its own is made of its address.
        read_tool_id(fields, str)
        tool = build_tool(fields, address, tool_id="", bundle="", place=place)
        run = replace(tool.run, bundle="") if isinstance(tool.run, Http) else tool.run
        metadata = tool.metadata if fields.switch("isEnabled") else {**tool.metadata, "isEnabled": False}
        return [replace(tool, run=run, metadata=metadata)]
