# /// script
# dependencies = ["langchain-core>=0.3", "pydantic>=2"]
# ///
from typing import Literal

from langchain_core.tools import tool
from pydantic import BaseModel, Field


class LoanInput(BaseModel):
    """What the customer wants to borrow."""

    principal: float = Field(..., gt=0, description="Amount borrowed")
    annual_rate: float = Field(description="Yearly interest in percent, e.g. 4.5", ge=0, le=100)
    years: int = Field(default=10, ge=1, le=40, description="Term in years")
    rounding: Literal["cents", "whole"] = "cents"


@tool("loan_payment", args_schema=LoanInput, return_direct=True)
def _loan(principal: float, annual_rate: float, years: int = 10, rounding: str = "cents") -> float:
    """Monthly payment of an annuity loan."""
    months = years * 12
    monthly = annual_rate / 1200
    if monthly == 0:
        payment = principal / months
    else:
        payment = principal * monthly / (1 - (1 + monthly) ** -months)
    return round(payment) if rounding == "whole" else round(payment, 2)
