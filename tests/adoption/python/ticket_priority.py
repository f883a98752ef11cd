from enum import Enum


class Impact(Enum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Urgency(Enum):
    LATER = 1
    SOON = 2
    NOW = 3


class Priority(Enum):
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


def ticket_priority(impact: Impact, urgency: Urgency = Urgency.SOON, vip: bool = False) -> Priority:
    """Priority of a support ticket according to the service agreement."""
    if not isinstance(impact, Impact) or not isinstance(urgency, Urgency):
        raise TypeError("impact and urgency must be enum members")
    score = {Impact.LOW: 0, Impact.MEDIUM: 1, Impact.HIGH: 2}[impact] + urgency.value
    if vip:
        score += 1
    if score >= 5:
        return Priority.P1
    if score >= 3:
        return Priority.P2
    return Priority.P3
