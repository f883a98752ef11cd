# /// script
# requires-python = ">=3.10"
# dependencies = ["pydantic>=2"]
# ///
"""Checks sign-ups before they reach the CRM."""
from datetime import date

from pydantic import BaseModel, Field


class Address(BaseModel):
    street: str
    zip: str = Field(pattern=r"^\d{5}$")


class Signup(BaseModel):
    name: str = Field(min_length=1)
    born: date
    address: Address
    newsletter: bool = False


class Outcome(BaseModel):
    accepted: bool
    reason: str | None = None


def check_signup(signup: Signup, today: date = date(2026, 1, 1)) -> Outcome:
    """Whether a sign-up may be accepted: nobody under 18."""
    age = today.year - signup.born.year - ((today.month, today.day) < (signup.born.month, signup.born.day))
    if age < 18:
        return Outcome(accepted=False, reason=f"only {age} years old")
    return Outcome(accepted=True)
