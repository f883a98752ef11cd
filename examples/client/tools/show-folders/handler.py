"""Asks the client which folders it works on."""

from toolcrib.handler import ErrorType, ToolError


async def execute(args, context):
    context.progress(1, 2, "asking the client")
    try:
        folders = [root["uri"] for root in await context.roots()]
    except ToolError as refusal:
        if refusal.type != ErrorType.CAPABILITY_MISSING:
            raise
        folders = []
    context.log("info", {"folders": len(folders)})
    return {"ok": True, "data": {"folders": folders}}
