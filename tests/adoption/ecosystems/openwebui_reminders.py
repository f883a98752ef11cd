"""
title: Date helper
author: anna
funding_url: https://example.org
version: 1.0
required_open_webui_version: 0.4.0
"""

import json
from datetime import date, timedelta
from typing import Any, Awaitable, Callable, Optional

from pydantic import BaseModel


class EventEmitter:
    def __init__(self, event_emitter: Optional[Callable[[dict], Awaitable[None]]] = None):
        self.event_emitter = event_emitter

    async def emit(self, description: str, done: bool = False) -> None:
        if self.event_emitter:
            await self.event_emitter({"type": "status", "data": {"description": description, "done": done}})


class Tools:
    class UserValves(BaseModel):
        country: str = "NO"

    async def add_days(
        self,
        start: str,
        days: int,
        __user__: dict = {},
        __event_emitter__: Callable[[dict], Any] = None,
    ) -> str:
        """
        Add days to a date.
        :param start: The date as YYYY-MM-DD.
        :param days: How many days to add; may be negative.
        """
        emitter = EventEmitter(__event_emitter__)
        await emitter.emit("counting")
        result = date.fromisoformat(start) + timedelta(days=days)
        await emitter.emit("done", done=True)
        return json.dumps({"date": result.isoformat(), "weekday": result.strftime("%A"), "for": __user__.get("name")})
