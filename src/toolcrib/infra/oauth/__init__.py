"""Access tokens of OAuth 2 authorization servers: requested through egress, stored before they are used, shared by all processes.

Here: the stored form of tokens. A text of three lines, because the masking of secrets also masks each line of a secret: facts as
JSON, the access token, and the refresh token, which may be empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import orjson

LAYOUT = "toolcrib tokens 1"
LINES = 3
# A token counts as expired this long before its time, or when a tenth of its lifetime is left: clocks differ, and a request takes time.
LEEWAY_SECONDS = 30.0
LEEWAY_SHARE = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class OAuthTokens:
    """Tokens of one grant; without `expires_at` the access token is valid until it is refused.

    `scope` is what the server granted, empty if it did not say. `token_url` and `client_id` identify the server and the client,
    `source` is a hash of the secret that they were obtained with.
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    received_at: float = 0.0
    expires_at: float | None = None
    scope: str = ""
    token_url: str = ""
    client_id: str = ""
    source: str = ""

    def is_fresh(self, now: float) -> bool:
        """Whether the access token can still be sent."""
        if self.expires_at is None:
            return True
        leeway = min(LEEWAY_SECONDS, (self.expires_at - self.received_at) * LEEWAY_SHARE)
        # Without this check, a token of any age would look fresh after the clock was set back.
        return self.received_at - LEEWAY_SECONDS <= now < self.expires_at - leeway

    def to_text(self) -> str:
        """The tokens as they are stored."""
        facts = {
            "layout": LAYOUT,
            "received_at": self.received_at,
            "expires_at": self.expires_at,
            "scope": self.scope,
            "token_url": self.token_url,
            "client_id": self.client_id,
            "source": self.source,
        }
        return f"{orjson.dumps(facts).decode()}\n{self.access_token}\n{self.refresh_token}"


def read_tokens(text: str) -> OAuthTokens | None:
    """Parse stored tokens; None if the text is something else."""
    lines = text.split("\n")
    if len(lines) != LINES:
        return None
    try:
        facts = orjson.loads(lines[0])
    except orjson.JSONDecodeError:
        return None
    if not isinstance(facts, dict) or facts.get("layout") != LAYOUT:
        return None
    expires = facts.get("expires_at")
    return OAuthTokens(
        access_token=lines[1],
        refresh_token=lines[2],
        received_at=_moment(facts.get("received_at")) or 0.0,
        expires_at=_moment(expires),
        scope=str(facts.get("scope", "")),
        token_url=str(facts.get("token_url", "")),
        client_id=str(facts.get("client_id", "")),
        source=str(facts.get("source", "")),
    )


def _moment(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and isinstance(value, int | float) else None
