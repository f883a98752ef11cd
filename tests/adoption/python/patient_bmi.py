from typing import NotRequired, TypedDict


class Patient(TypedDict):
    id: str
    weight_kg: float
    height_cm: float
    smoker: NotRequired[bool]


class Finding(TypedDict):
    id: str
    bmi: float
    note: str


def assess(patients: list[Patient]) -> list[Finding]:
    """Body mass index of each patient, with a note for the doctor."""
    findings: list[Finding] = []
    for p in patients:
        bmi = round(p["weight_kg"] / (p["height_cm"] / 100) ** 2, 1)
        note = "normal" if 18.5 <= bmi < 25 else "see doctor"
        if p.get("smoker"):
            note += ", smoker"
        findings.append({"id": p["id"], "bmi": bmi, "note": note})
    return findings
