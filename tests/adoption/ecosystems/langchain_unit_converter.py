# /// script
# requires-python = ">=3.10"
# dependencies = [
#   "langchain-core",
# ]
# ///
"""Unit conversion for the field-notes assistant."""

from enum import Enum
from typing import Optional, Type

from langchain_core.callbacks import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun
from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, Field

FACTORS = {("km", "mi"): 0.621371, ("kg", "lb"): 2.204623, ("l", "gal"): 0.264172}


class Direction(str, Enum):
    forward = "forward"
    backward = "backward"


class ConverterInput(BaseModel):
    value: float = Field(description="The number to convert")
    source: str = Field(description="Metric unit: km, kg or l")
    target: str = Field(description="Imperial unit: mi, lb or gal")
    direction: Direction = Field(default=Direction.forward, description="backward converts to metric")


class UnitConverterTool(BaseTool):
    name: str = "unit_converter"
    description: str = "Convert between metric and imperial units."
    args_schema: Type[BaseModel] = ConverterInput
    digits: int = 3

    def _run(
        self,
        value: float,
        source: str,
        target: str,
        direction: Direction = Direction.forward,
        run_manager: Optional[CallbackManagerForToolRun] = None,
    ) -> float:
        factor = FACTORS.get((source, target))
        if factor is None:
            raise ToolException(f"cannot convert {source} to {target}")
        result = value * factor if direction is Direction.forward else value / factor
        return round(result, self.digits)

    async def _arun(
        self,
        value: float,
        source: str,
        target: str,
        direction: Direction = Direction.forward,
        run_manager: Optional[AsyncCallbackManagerForToolRun] = None,
    ) -> float:
        return self._run(value, source, target, direction)
