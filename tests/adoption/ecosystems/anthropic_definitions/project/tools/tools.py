"""Functions for the definitions in tools.json; `from` is a keyword, hence the dict."""

RATES = {"EUR": 1.0, "NOK": 11.5}


def get_exchange(tool_input: dict) -> dict:
    euros = tool_input["amount"] / RATES[tool_input["from"]]
    return {"amount": round(euros * RATES[tool_input["to"]], 2), "currency": tool_input["to"]}
