"""
title: Weather by city
author: someone
author_url: https://example.com
version: 1.2.0
license: MIT
requirements: pydantic
"""
from typing import Any, Callable, Optional

from pydantic import BaseModel, Field


class Tools:
    class Valves(BaseModel):
        UNIT: str = Field(default="C", description="C or F")
        MAX_DAYS: int = Field(default=3, description="how many days at most")
        API_KEY: str = Field(default="", description="key of the service")

    class UserValves(BaseModel):
        SHOW_ICON: bool = True

    def __init__(self):
        self.valves = self.Valves()
        self.citation = True

    async def get_forecast(
        self,
        city: str,
        days: int = 1,
        __user__: Optional[dict] = None,
        __event_emitter__: Callable[[dict], Any] = None,
    ) -> str:
        """
        Get the forecast of a city.
        :param city: The city.
        :param days: How many days.
        """
        if __event_emitter__:
            await __event_emitter__({"type": "status", "data": {"description": "working", "done": False}})
        days = min(days, self.valves.MAX_DAYS)
        key = "with" if self.valves.API_KEY else "without"
        return f"{city}: 20 {self.valves.UNIT} for {days} days, {key} key"

    def _helper(self):
        return 1
