def second_reminder(invoice: int, days_late: int = 14) -> str:
    """Write the second reminder of an invoice."""
    return f"Invoice {invoice} is {days_late} days late."
