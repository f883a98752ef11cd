# /// script
# dependencies = ["langchain-core"]
# ///
"""Lookup in a price list that is handed to the tool when the agent is wired."""

from typing import Any, Dict

from langchain_core.tools import BaseTool


class CatalogLookup(BaseTool):
    name: str = "catalog_lookup"
    description: str = "Price of an article by its number."
    prices: Dict[str, float]
    currency: str = "EUR"

    def _run(self, article: str, quantity: int = 1) -> Dict[str, Any]:
        if article not in self.prices:
            return {"found": False}
        return {"found": True, "total": round(self.prices[article] * quantity, 2), "currency": self.currency}


lookup = CatalogLookup(prices={"A-1": 2.5, "B-7": 19.99})
