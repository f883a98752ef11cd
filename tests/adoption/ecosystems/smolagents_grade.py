# /// script
# dependencies = ["smolagents>=1.0"]
# ///
from typing import Optional

from smolagents import Tool


class GradeTool(Tool):
    name = "grade_points"
    description = "Turn points into a grade, with an optional bonus."
    inputs = {
        "points": {"type": "number", "description": "Points reached, 0 to 100."},
        "bonus": {"type": "number", "description": "Extra points.", "nullable": True},
        "scale": {"type": "array", "description": "Lower bounds of A, B, C.", "nullable": True},
    }
    output_type = "string"

    def setup(self):
        self.letters = "ABC"
        self.is_initialized = True

    def forward(self, points: float, bonus: Optional[float] = None, scale: Optional[list] = None) -> str:
        if not self.is_initialized:
            self.setup()
        total = min(100, points + (bonus or 0))
        for letter, bound in zip(self.letters, scale or [90, 75, 60]):
            if total >= bound:
                return letter
        return "F"
