"""The settings table `[ecosystems]`: values for files of other frameworks."""

from __future__ import annotations

from collections.abc import Mapping

from toolcrib.infra.settings import Table, setting
from toolcrib.lib.schema_structure import is_json


def _read_valves(name: str, value: object) -> Mapping[str, Mapping[str, object]]:
    if not isinstance(value, Mapping):
        raise ValueError(f'{name} must be a table of files, such as {name}.weather = {{ units = "metric" }}')
    for file, fields in value.items():
        if not isinstance(fields, Mapping):
            raise ValueError(f'{name}.{file!s:.80} must be a table of valves, such as {{ units = "metric" }}')
        for field, given in fields.items():
            if not is_json(given):
                raise ValueError(f"{name}.{file!s:.80}.{field!s:.80} must be a JSON value; write a date as a text")
    return {str(file): dict(fields) for file, fields in value.items()}


class EcosystemsSettings(Table, name="ecosystems"):
    """Files of other frameworks."""

    valves: Mapping[str, Mapping[str, object]] = setting(
        default={},
        read=_read_valves,
        summary="values of the `Valves` of Open WebUI files, by the name of the file without `.py` and that of the field; `${secret:NAME}` hands over a secret",
    )
