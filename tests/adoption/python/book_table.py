# /// script
# dependencies = ["pydantic>=2"]
# ///
from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Literal, Optional, Union

from pydantic import BaseModel, ConfigDict, EmailStr, Field, field_validator


class Seat(str, Enum):
    window = "window"
    aisle = "aisle"


class Guest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1, description="Full name")
    age: int | None = Field(default=None, ge=0, le=150)
    seat: Seat = Seat.aisle

    @field_validator("name")
    @classmethod
    def no_digits(cls, value: str) -> str:
        if any(c.isdigit() for c in value):
            raise ValueError("a name has no digits")
        return value.title()


class Card(BaseModel):
    kind: Literal["card"]
    number: str = Field(alias="cardNumber", pattern=r"^\d{4}$")


class Cash(BaseModel):
    kind: Literal["cash"] = "cash"


class Booking(BaseModel):
    guests: list[Guest]
    at: datetime
    pay: Union[Card, Cash] = Field(discriminator="kind")
    note: Optional[str] = None


def book_table(booking: Booking, tables: Annotated[int, Field(ge=1, le=4, description="How many tables")] = 1) -> Booking:
    """Book a table.

    Args:
        booking: What to book.
    """
    assert isinstance(booking, Booking)
    booking.note = f"{tables} for {len(booking.guests)}"
    return booking
