"""Bundles from Python: put a tool, call it, find it."""

from toolcrib import Context, Crib


def shout(context: Context, arguments: dict[str, str]) -> str:
    return arguments["text"].upper() + "!"


TOOL = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Shout",
    "description": "Write a text in capitals",
    "type": "go",
    "isEnabled": True,
    "argSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to shout."}},
        "required": ["text"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "string"},
    "impl": {"goFunc": "voice.shout"},
}
BUNDLE = "01a1e380-0000-7000-8000-000000000001"

with Crib(functions={"voice.shout": shout}) as crib:
    crib.bundles.put_bundle(BUNDLE, {"slug": "voice", "displayName": "Voice", "isEnabled": True})
    crib.bundles.put_tool(BUNDLE, "shout", "v1", TOOL)
    print(crib.call_sync("shout", text="hello").value)
    print([tool.name for tool in crib.find_tools("make letters capital", limit=1)])
    print(crib.bundles.tool(BUNDLE, "shout", "v1").calls)
