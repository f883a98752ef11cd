"""How one operation is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.http.openapi.answers import BODIES, problems, schema
from toolcrib.faces.http.openapi.parameters import use

if TYPE_CHECKING:
    from collections.abc import Mapping


def operation(
    name: str,
    tag: str,
    summary: str,
    *,
    scope: str,
    answers: Mapping[str, object],
    parameters: tuple[str, ...] = (),
    refusals: tuple[int, ...] = (),
    body: str = "",
    example: object = None,
    yaml_example: str = "",
    needs_body: bool = True,
    of_call: bool = False,
    description: str = "",
) -> dict[str, object]:
    """An operation: what it takes, what it answers, and which scope its token needs."""
    found: dict[str, object] = {
        "operationId": name,
        "tags": [tag],
        "summary": summary,
        "description": f"{description} Needs the scope `{scope}`.".lstrip(),
        "parameters": use(*parameters, "requestID"),
        "responses": {**answers, **problems(*refusals, *(BODIES if body else ()), of_call=of_call)},
    }
    if body:
        content: dict[str, object] = {"schema": schema(body)}
        content |= {} if example is None else {"example": example}
        contents: dict[str, object] = {"application/json": content}
        if yaml_example:
            contents["application/yaml"] = {"schema": {"type": "string"}, "example": yaml_example}
        found["requestBody"] = {"required": needs_body, "content": contents}
    return found
