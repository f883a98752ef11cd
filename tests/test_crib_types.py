"""What a checker of types knows of a Crib: an ignore that is not needed fails `make lint`."""

from __future__ import annotations

import pytest

from toolcrib import Crib, SettingsError, ToolError
from toolcrib.core.call_state import CallsSettings
from toolcrib.core.plugins import Plugins
from toolcrib.given_settings import GivenSettings


def test_every_table_of_the_settings_is_a_typed_parameter() -> None:
    # These two names mean other things in `Crib(…)`; such a table is given in `settings`.
    assert {*GivenSettings.__annotations__, "project", "rules"} == {*Plugins().tables()}


def test_a_table_that_there_is_not_is_refused_by_checkers_and_when_it_runs() -> None:
    with pytest.raises(SettingsError, match="calls"):
        Crib(clals={"timeout_ms": 5})  # type: ignore[call-arg]
    with pytest.raises(SettingsError, match="calls"):
        Crib(calls=5)  # type: ignore[arg-type]


def test_tables_are_given_as_mappings_typed_or_among_further_settings() -> None:
    for crib in (
        Crib(calls={"timeout_ms": 5}),
        Crib(calls=CallsSettings(timeout_ms=5)),
        Crib(settings={"calls": {"timeout_ms": 5}}),
    ):
        with crib:
            assert crib.settings.table(CallsSettings).timeout_ms == 5


async def test_a_call_that_is_not_awaited_is_no_result_to_a_checker() -> None:
    async with Crib() as crib:
        pending = crib.call("nobody")
        with pytest.raises(AttributeError, match="write: await"):
            pending.value  # type: ignore[attr-defined]  # noqa: B018
        result = await pending
        with pytest.raises(ToolError):
            result.value_as(int).bit_length()
