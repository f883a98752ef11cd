"""Plugin for our automation server: every plugin has execute(params)."""

NAME = "vat_check"


def execute(params):
    """Check the shape of a VAT number.

    params:
        number (str): the VAT number, with country code
        strict (bool): refuse blanks; default false
    """
    number = params["number"]
    if params.get("strict") and " " in number:
        return {"valid": False, "reason": "blanks"}
    number = number.replace(" ", "")
    valid = number[:2].isalpha() and number[2:].isdigit() and 10 <= len(number) <= 14
    return {"valid": valid, "country": number[:2].upper()}
