"""Refund rules for the support agent."""
from typing import Optional, Type

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field


class RefundInput(BaseModel):
    order_id: str = Field(..., description="Order number", pattern=r"^[A-Z]{2}\d+$")
    days: int = Field(ge=0, description="Days since delivery")


class RefundTool(BaseTool):
    name: str = "refund_check"
    description: str = "Whether an order may be refunded"
    args_schema: Type[BaseModel] = RefundInput
    limit_days: int = 14

    def _run(self, order_id: str, days: int, run_manager: Optional[CallbackManagerForToolRun] = None) -> str:
        return f"{order_id}: {'yes' if days <= self.limit_days else 'no'}"

    async def _arun(self, order_id: str, days: int, run_manager=None) -> str:
        return self._run(order_id, days)


tools = [RefundTool(limit_days=30)]
