# /// script
# dependencies = ["langchain-core"]
# ///
from typing import Annotated

from langchain_core.tools import InjectedToolArg, tool

FAVOURITES = {"u1": ["tea"], "u2": []}


@tool
def list_favourites(limit: int, user_id: Annotated[str, InjectedToolArg]) -> list[str]:
    """List the favourite drinks of the current user."""
    return FAVOURITES[user_id][:limit]
