"""Ask every gate about a call without making it."""

from toolcrib import Crib, tool


@tool(requires=["mail.send"])
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


if __name__ == "__main__":
    with Crib(tools=[send_mail]) as crib:
        refusal = crib.explain("send_mail", to="ada@example.com", text="hi").refusal
        if refusal and refusal.verdict:
            print(refusal.gate, "-", refusal.verdict.reason)
    with Crib(tools=[send_mail], grants={"send_mail": ["mail.send"]}) as crib:
        print(crib.explain("send_mail", to="ada@example.com", text="hi").allowed)
