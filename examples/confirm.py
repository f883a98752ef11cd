"""A tool that needs confirmation: the host asks a person and keeps the token to itself."""

from toolcrib import Call, Crib, Kind, tool


@tool(confirm=True, side_effects="writes")
def transfer(amount: int, to: str) -> str:
    """Transfer money."""
    return f"sent {amount} to {to}"


def ask_person(question: str) -> bool:
    print(f"person, please: {question}")
    return True


if __name__ == "__main__":
    arguments = {"amount": 20, "to": "Ada"}
    with Crib(tools=[transfer]) as crib:
        refused = crib.call_sync("transfer", arguments).error
        if refused and refused.kind is Kind.CONFIRMATION_REQUIRED and ask_person(f"transfer {arguments}?"):
            confirmed = Call(name="transfer", arguments=arguments, confirmation=str(refused.details["confirmation"]))
            print(crib.call_sync(confirmed).value)
            print("again:", crib.call_sync(confirmed).error)
