"""Gives money back after confirmation."""

from toolcrib.handler import ErrorType, ToolError


async def execute(args, context):
    if not context.session.isActive:
        error = {"type": ErrorType.SESSION_INACTIVE, "message": "The conversation is over", "retryable": False}
        return {"ok": False, "error": error}
    try:
        await context.messaging.send({"type": "refund", "order": args["order_id"], "amount": args["amount"]})
    except Exception:
        raise ToolError(ErrorType.TRANSIENT, "The app could not be reached", retryable=True) from None
    context.audit.log("refund", {"order": args["order_id"]})
    return {
        "ok": True,
        "data": {"refunded": args["amount"]},
        "intents": [{"type": "END_VOICE_SESSION", "after": "farewell_spoken"}],
    }
