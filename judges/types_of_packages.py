"""Call files in a sandbox that use the real packages, and compare with docs/types.md."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from toolcrib import Crib

PAGE = Path(__file__).parents[1] / "docs" / "types.md"
CODE = re.compile(r"`([^`]*)`")
MODELS = '''
import datetime, enum
from typing import Annotated, Optional
import attrs
from pydantic import BaseModel, Field, HttpUrl, PositiveInt, field_validator

class Unit(enum.Enum):
    KELVIN = "k"

class Line(BaseModel):
    """A line.

    Attributes:
        name: What it is.
    """
    name: str
    count: PositiveInt = 1
    when: Optional[datetime.date] = None

class Order(BaseModel):
    lines: list[Line]
    unit: Unit = Unit.KELVIN
    price: float = Field(..., gt=0, alias="unitPrice")

    @field_validator("lines")
    @classmethod
    def some(cls, lines):
        if not lines:
            raise ValueError("an order has lines")
        return lines

@attrs.define
class Box:
    width: int
    depth: int = 2

def order(order: Order, box: Box, site: HttpUrl, count: Annotated[int, Field(ge=1)] = 1) -> dict:
    """Show what arrives."""
    return {"order": order, "shown": [repr(order.unit), repr(order.lines[0].when), repr(box), str(site)], "box": box}
'''


def tables() -> list[tuple[list[str], list[str]]]:
    """The rows below the heading about packages, each with the head of its table."""
    found: list[tuple[list[str], list[str]]] = []
    head: list[str] = []
    for line in PAGE.read_text("utf-8").partition("## Values of other packages")[2].splitlines():
        cells = [cell.strip() for cell in line.split("|")][1:-1]
        if not cells:
            head = []
        elif not head:
            head = cells
        elif not set(line) <= set("|-"):
            found.append((head, [(CODE.search(cell) or [cell, cell])[1] for cell in cells]))
    return found


def write(project: Path, name: str, code: str) -> None:
    """Write a file into the folder of tools."""
    (project / "tools" / f"{name}.py").write_text(code, "utf-8")


def wrong(crib: Crib, number: int, head: list[str], cells: list[str]) -> str:
    """What is not as the page says."""
    name = f"row_{number}"
    arguments: dict[str, Any] = {"x": json.loads(cells[1])} if head[0] == "Hint" else {}
    result = crib.call_sync(name, **arguments)
    if head[-1] == "Error":
        said = "" if result.error is None else result.error.message
        return "" if cells[-1] in said else f"said {said!r}"
    if not result.ok:
        return f"failed: {result.error}"
    wanted = cells[-1].replace("\\n", "\n") if head[0] == "Hint" else json.loads(cells[-1])
    return "" if result.value == wanted else f"gave {result.value!r}"


def judge_models(crib: Crib) -> list[str]:
    """What is not right about models of pydantic and classes of attrs."""
    good = {"lines": [{"name": "a", "when": "2026-01-31"}], "unitPrice": 2.5}
    box, site = {"width": 1}, "https://example.com/a"
    found = []
    result = crib.call_sync("order", order=good, box=box, site=site)
    wanted = {
        "order": {"lines": [{"name": "a", "count": 1, "when": "2026-01-31"}], "unit": "k", "unitPrice": 2.5},
        "shown": ["<Unit.KELVIN: 'k'>", "datetime.date(2026, 1, 31)", "Box(width=1, depth=2)", site],
        "box": {"width": 1, "depth": 2},
    }
    if not result.ok or result.value != wanted:
        found.append(f"order gave {result.value!r} {result.error}")
    for arguments, word in (
        ({"order": {**good, "lines": []}, "box": box, "site": site}, "an order has lines"),
        ({"order": {**good, "unitPrice": 0}, "box": box, "site": site}, "unitPrice"),
        ({"order": good, "box": {"height": 1}, "site": site}, "height"),
        ({"order": good, "box": box, "site": "nowhere"}, "site"),
        ({"order": good, "box": box, "site": site, "count": 0}, "count"),
    ):
        refused = crib.call_sync("order", **arguments)
        if refused.ok or word not in refused.error.message:
            found.append(f"{arguments} gave {refused.value!r} {refused.error}")
    return found


def main() -> int:
    """Judge every row, and the models."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "tools").mkdir()
        rows = tables()
        for number, (head, cells) in enumerate(rows):
            returned = f"repr(x) if {cells[0].startswith('numpy')} else str(x)" if head[0] == "Hint" else cells[0]
            takes = f"x: {cells[0]}" if head[0] == "Hint" else ""
            code = f"import numpy, pandas\n\ndef row_{number}({takes}):\n    'Give a value.'\n    return {returned}\n"
            write(project, f"row_{number}", code)
        write(project, "order", MODELS)
        with Crib(project) as crib:
            found += [problem.message for problem in crib.problems]
            for number, (head, cells) in enumerate(rows):
                if problem := wrong(crib, number, head, cells):
                    found.append(f"{cells[0]}: {problem}")
            found += judge_models(crib)
    print("\n".join(found) or f"{len(rows)} rows and the models are as the page says")
    return 1 if found or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
