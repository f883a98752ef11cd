"""Valves of Open WebUI files: the operator's values reach the file, wrong ones are problems, and secrets come back masked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolcrib import Crib

KEY = "wk-7f3a9c51d2e84b60"
WEATHER = '''"""
title: Weather
"""
from typing import Literal, Optional

from pydantic import BaseModel, Field


class Tools:
    class Valves(BaseModel):
        units: Literal["metric", "imperial"] = "metric"
        days: int = Field(default=3, ge=1, le=9)
        api_key: str = Field(default="", description="key of the service")
        proxy: Optional[str] = None

    class UserValves(BaseModel):
        icons: bool = True

    def __init__(self):
        self.valves = self.Valves(proxy="of the file")
        self.days_at_start = self.valves.days

    def forecast(self, city: str) -> str:
        """
        Tell the weather of a city.
        :param city: The city.
        """
        valves = self.valves
        return f"{city}: {valves.units}, {valves.days}, {self.days_at_start}, {len(valves.api_key)}, {valves.proxy}"

    def reveal(self) -> dict:
        """Tell the key."""
        print("printed", self.valves.api_key)
        return {"key": self.valves.api_key, "inside": f"Bearer {self.valves.api_key}"}

    def fail(self) -> str:
        """Fail with the key."""
        raise RuntimeError(f"refused {self.valves.api_key}")
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "weather.py").write_text(WEATHER)
    (tmp_path / "toolcrib.toml").write_text("")
    return tmp_path


def set_valves(project: Path, written: str, file: str = "weather") -> Path:
    (project / "toolcrib.toml").write_text(f"[ecosystems.valves.{file}]\n{written}\n")
    return project


def problems_of(project: Path) -> list[str]:
    with Crib(project) as crib:
        return [problem.message for problem in crib.problems]


def test_the_values_of_an_operator_reach_the_file_before_its_own_code_uses_them(project):
    with Crib(set_valves(project, 'units = "imperial"\ndays = 5\nproxy = "of the operator"')) as crib:
        assert not crib.problems
        assert crib.call_sync("forecast", city="Ulm").value == "Ulm: imperial, 5, 5, 0, of the operator"
    with Crib(set_valves(project, "")) as crib:
        assert crib.call_sync("forecast", city="Ulm").value == "Ulm: metric, 3, 3, 0, of the file"


def test_plain_classes_and_fields_without_a_default_are_set_too(project):
    (project / "tools" / "bill.py").write_text(
        '"""\ntitle: Bill\n"""\nclass Tools:\n    class Valves:\n        currency = "EUR"\n'
        '    def pay(self) -> str:\n        """Pay."""\n        return self.valves.currency\n'
    )
    (project / "tools" / "strict.py").write_text(
        "from pydantic import BaseModel\nclass Tools:\n    class Valves(BaseModel):\n        host: str\n"
        "    def __init__(self):\n        self.valves = self.Valves()\n"
        '    def ask(self) -> str:\n        """Ask."""\n        return self.valves.host\n'
    )
    (project / "toolcrib.toml").write_text(
        '[ecosystems]\nvalves = { bill = { currency = "CHF" }, strict = { host = "a.example" } }\n'
    )
    with Crib(project) as crib:
        assert not crib.problems
        assert crib.call_sync("pay").value == "CHF"
        assert crib.call_sync("ask").value == "a.example"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("days = 10", "days: weather.py takes a whole number (minimum 1, maximum 9) there, not a whole number"),
        ('days = "7"', "days: weather.py takes a whole number (minimum 1, maximum 9) there, not a text"),
        ("days = true", "days: weather.py takes a whole number (minimum 1, maximum 9) there, not true or false"),
        ('days = "${secret:DAYS}"', "days: weather.py takes a whole number (minimum 1, maximum 9) there, not a secret"),
        ('units = "kelvin"', "units: weather.py takes a text (enum ['metric', 'imperial']) there, not a text"),
        ("api_key = { a = [1] }", "api_key: weather.py takes a text there, not a table"),
        ("dayz = 2\n", "dayz: weather.py has no such valve; did you mean days?"),
        ('__class__ = "x"', "__class__: weather.py has no such valve; known are units, days, api_key, proxy"),
        ("icons = false", "icons: weather.py has no such valve; known are units, days, api_key, proxy"),
        ('api_key = "Bearer ${secret:KEY}"', 'api_key: a secret is a value as a whole; write "${secret:NAME}"'),
        ('api_key = "${secret:../../etc}"', 'api_key: a secret is a value as a whole; write "${secret:NAME}"'),
    ],
)  # fmt: skip
def test_a_value_that_a_valve_does_not_take_is_a_problem_with_its_place_and_no_call_is_made(project, written, message):
    (problem,) = problems_of(set_valves(project, written))
    assert problem.startswith(f"toolcrib.toml: ecosystems.valves.weather.{message}")
    with Crib(project) as crib:
        result = crib.call_sync("forecast", city="Ulm")
    assert result.error is not None
    assert result.error.message == f"forecast cannot be called: {problem}"


@pytest.mark.parametrize(
    ("file", "cure"),
    [
        ("wether", "no file of Open WebUI is called wether.py; did you mean weather?"),
        ("forecast", "no file of Open WebUI is called forecast.py; valves belong to a file, so write ecosystems.valves.weather"),
        ("zzz", "no file of Open WebUI is called zzz.py; add the file with: crib add FILE, or remove the values"),
    ],
)  # fmt: skip
def test_values_for_no_file_are_a_problem_that_check_and_doctor_tell(project, cli, file, cure):
    set_valves(project, "days = 2", file)
    checked = cli("check", "-C", str(project))
    assert checked.code == 1
    assert f"toolcrib.toml: ecosystems.valves.{file}: {cure}" in checked.out
    assert cure in cli("doctor", "-C", str(project)).out


@pytest.mark.parametrize(
    "written", ["valves = 3", "valves.weather = 3", "valves.weather.days = 1979-05-27", "valves.weather.days = nan"]
)
def test_what_is_no_map_of_json_is_refused_with_the_settings(project, cli, written):
    (project / "toolcrib.toml").write_text(f"[ecosystems]\n{written}\n")
    refused = cli("list", "-C", str(project))
    assert refused.code == 2
    assert "toolcrib.toml: ecosystems.valves" in refused.err


@pytest.mark.parametrize(
    "extra", ["        model_config = {'extra': 'allow'}\n", "        class Config: extra = 'allow'\n"]
)
def test_a_class_that_takes_other_fields_gets_what_the_file_does_not_show(project, extra):
    code = WEATHER.replace("        units: Literal", f"{extra}        units: Literal")
    (project / "tools" / "weather.py").write_text(code.replace("{valves.proxy}", "{valves.other}"))
    with Crib(set_valves(project, "other = 7")) as crib:
        assert not crib.problems
        assert crib.call_sync("forecast", city="Ulm").value == "Ulm: metric, 3, 3, 0, 7"


def test_a_secret_reaches_the_tool_at_the_call_and_comes_back_masked(project, cli, caplog):
    set_valves(project, 'api_key = "${secret:WEATHER_KEY}"')
    with Crib(project) as crib:
        missing = crib.call_sync("forecast", city="Ulm")
        assert missing.error is not None
        assert missing.error.message.endswith("which is not there; run: crib secret set WEATHER_KEY")
        crib.secrets.set("WEATHER_KEY", KEY)
        assert crib.call_sync("forecast", city="Ulm").value == f"Ulm: metric, 3, 3, {len(KEY)}, of the file"
        revealed, failed = crib.call_sync("reveal"), crib.call_sync("fail")
        assert revealed.ok
        assert failed.error is not None
        assert failed.error.message.startswith("fail failed (RuntimeError): refused ")
        tool = crib.find("reveal")
        shown = [repr(each) for each in (revealed, failed, tool, crib.settings.explicit("ecosystems"))]
    for words in (["doctor", "--all"], ["show", "reveal"], ["explain", "reveal"], ["export", "openai"], ["check"]):
        ended = cli(*words, "-C", str(project))
        shown += [ended.out, ended.err]
    kept = [path.read_bytes() for path in (project / ".toolcrib").rglob("*") if path.is_file()]
    assert KEY not in caplog.text + "".join(shown)
    assert not any(KEY.encode() in content for content in kept)


def test_a_model_that_refuses_a_secret_does_not_tell_it(project):
    code = WEATHER.replace('Field(default="", description', 'Field(default="", max_length=4, description')
    (project / "tools" / "weather.py").write_text(code)
    with Crib(set_valves(project, 'api_key = "${secret:WEATHER_KEY}"')) as crib:
        long_key = KEY * 9  # which pydantic would cut in the middle, so that no mask knows what is left
        crib.secrets.set("WEATHER_KEY", long_key)
        error = crib.call_sync("forecast", city="Ulm").error
    assert error is not None
    assert "its Valves refuse api_key; change ecosystems.valves in toolcrib.toml" in error.message
    assert KEY[:8] not in repr(error)


def test_a_valve_without_a_value_is_told_when_the_file_is_added_and_checked(project, tmp_path, cli):
    (project / "tools" / "weather.py").rename(tmp_path / "weather.py")
    need = (
        "a value of its valve api_key, which is empty; write in toolcrib.toml: [ecosystems] valves.weather.api_key = "
        '"${secret:API_KEY}", and store it with: crib secret set API_KEY'
    )
    ended = cli("add", "-C", str(project), str(tmp_path / "weather.py"), "--json")
    assert ended.code == 0
    added = json.loads(ended.out)
    assert all(need in tool["missing"] for tool in added)
    assert not any("valve" in line for tool in added for line in tool["warnings"])
    assert f"it needs {need}" in cli("check", "-C", str(project)).out
    set_valves(project, 'api_key = "${secret:API_KEY}"')
    out = cli("check", "-C", str(project)).out
    assert need not in out
    assert "it needs the secret API_KEY, which is not there; run: crib secret set API_KEY" in out
