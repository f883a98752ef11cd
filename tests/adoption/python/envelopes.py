# /// script
# dependencies = ["typer"]
# ///
"""Envelope budgeting on the command line."""
from enum import Enum
from typing import Optional

import typer

app = typer.Typer(help="Envelope budgeting.")


class Period(str, Enum):
    week = "week"
    month = "month"


@app.command()
def split(
    amount: float = typer.Argument(..., help="What there is to spend."),
    envelopes: int = typer.Option(4, min=1, help="Number of envelopes."),
    period: Period = Period.month,
):
    """Split an amount evenly."""
    typer.echo(f"{amount / envelopes:.2f} per envelope and {period.value}")


@app.command("left-over")
def left_over(amount: float, spent: Optional[str] = typer.Option(None, help="Comma separated.")):
    """What is left after spending."""
    total = sum(float(x) for x in spent.split(",")) if spent else 0.0
    if total > amount:
        typer.echo("overspent", err=True)
        raise typer.Exit(code=2)
    typer.echo(f"{amount - total:.2f}")


if __name__ == "__main__":
    app()
