"""Sign webhooks. Needs WEBHOOK_KEY in the environment."""
import hashlib
import hmac
import os


def run(payload: str) -> str:
    """Signature of a payload, as our partners check it."""
    key = os.environ.get("WEBHOOK_KEY")
    if not key:
        raise RuntimeError("WEBHOOK_KEY is not set")
    return "sha256=" + hmac.new(key.encode(), payload.encode(), hashlib.sha256).hexdigest()
