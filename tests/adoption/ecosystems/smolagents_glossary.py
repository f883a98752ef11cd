# /// script
# dependencies = ["smolagents"]
# ///
from smolagents import Tool

TERMS = {"api": "application programming interface", "cpu": "central processing unit", "apk": "android package"}


class GlossaryTool(Tool):
    name = "glossary"
    description = "Find the terms that start with a prefix."
    inputs = {"prefix": {"type": "string", "description": "How the term starts."}}
    output_type = "object"

    def __init__(self, limit: int = 5, **kwargs):
        super().__init__(**kwargs)
        self.limit = limit

    def forward(self, prefix: str):
        hits = sorted(term for term in TERMS if term.startswith(prefix.lower()))
        if not hits:
            raise LookupError(f"no term starts with {prefix}")
        return {term: TERMS[term] for term in hits[: self.limit]}


glossary = GlossaryTool(limit=1)
