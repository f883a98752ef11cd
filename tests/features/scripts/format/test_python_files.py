"""Python files: module variables, read as literals from the syntax tree."""

import pytest

PYTHON = "__version__ = '1.0.0'\n__tool_type__ = 'python'\n__executor_id__ = 'python_runtime'\n__category__ = 'ops'\n"
DESCRIBED = f"{PYTHON}__tool_description__ = 'Do it.'\n"


class TestPython:
    @pytest.mark.spec("S3-12")
    def test_the_docstring_is_kept_beside_the_description(self, load):
        (tool,) = load("ops/do-it.py", f'"""The module.\n\nMore of it.\n"""\n{DESCRIBED}')
        assert tool.description == "Do it."
        assert tool.metadata == {"docstring": "The module.\n\nMore of it."}

    def test_annotated_and_joined_texts_are_literals(self, load):
        text = f"{PYTHON}__tool_description__: str = ('Do '\n    'it.')\n__parameters__ = ({{'name': 'x', 'type': 'integer', 'minimum': -1}},)\n"
        (tool,) = load("ops/do-it.py", text)
        assert tool.description == "Do it."
        assert tool.parameters["properties"]["x"] == {"type": "integer", "minimum": -1}

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("__tags__ = compute()", "6: __tags__: is not a literal, and nothing of the file is run to find out; write the value itself"),
            ("__tags__ = [\n  'a',\n  f'{x}']", "8: __tags__: is not a literal"),
            ("__config__ = {**base}", "6: __config__: has a key that is not text; write it in quotes"),
            ("__config__ = {1: 2}", "6: __config__: has a key that is not text"),
            ("__config__ = {'a': 1, 'a': 2}", "6: __config__: has the key 'a' twice; remove one"),
            ("__config__ = {'a': b'x'}", "6: __config__: is not a literal"),
            ("__config__ = {'a': {1, 2}}", "6: __config__: is not a literal"),
            ("__config__ = {'a': 1e999}", "6: __config__: a: inf is not a JSON value; write a finite number or null"),
            ("__config__ = {'a': 2**70}", "6: __config__: is not a literal"),
            ("__config__ = {'a': 99999999999999999999999}", "6: __config__: a: an integer beyond 64 bit does not arrive unchanged"),
            ("__config__ = {'a': '\\ud800'}", "6: __config__: a: text with half of a surrogate pair"),
            ("__tags__ = []\n__tags__ = ['a']", "7: __tags__: is set twice; write it once, as a literal"),
            ("__requires__ = []\n__requires__ += ['fs.write']", "7: __requires__: is set twice; write it once, as a literal"),
            ("__requires__ += ['fs.write']", "6: __requires__: is not a literal"),
        ],
    )  # fmt: skip
    def test_what_only_running_code_could_tell_is_refused_at_its_line(self, line, message, problems):
        assert problems("ops/do-it.py", f"{DESCRIBED}{line}\n")[0].startswith(message)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("tool_description", "f'{x}'"), ("version", "VERSION"), ("tool_id", "make()"), ("executor_id", "x")],
    )
    def test_what_is_no_literal_is_not_called_missing_as_well(self, name, value, problems):
        text = "".join(line for line in DESCRIBED.splitlines(keepends=True) if f"__{name}__" not in line)
        (message,) = problems("ops/do_It.py" if name == "tool_id" else "ops/do-it.py", f"{text}__{name}__ = {value}\n")
        assert f": __{name}__: is not a literal" in message

    def test_a_missing_variable_is_looked_for_under_names_like_it(self, problems):
        assert problems("ops/do-it.py", f"{PYTHON}__description__ = 'Do it.'\n") == [
            "1: __tool_description__: is missing; write __tool_description__ instead of __description__"
        ]

    def test_a_fault_inside_of_a_literal_is_told_at_its_own_line(self, problems):
        text = f"{DESCRIBED}__parameters__ = [\n  {{'name': 'a', 'type': 'string'}},\n  {{\n    'name': 'b',\n    'type': 'strong'}},\n]\n"
        assert problems("ops/do-it.py", text) == [
            "10: __parameters__[1].type: 'strong' is unknown; write one of string, integer, float, boolean, object, array"
        ]

    @pytest.mark.parametrize("name", ["__parameter__", "__tool_descriptions__", "__requries__", "__time_out__"])
    def test_a_slip_of_the_pen_comes_with_a_warning(self, name, load):
        (tool,) = load("ops/do-it.py", f"{DESCRIBED}{name} = []\n")
        assert f"ops/do-it.py:6: {name}: is not read; write __" in tool.warnings[0]

    def test_variables_that_every_module_may_have_bring_no_warning(self, load):
        names = (
            "all",
            "author",
            "copyright",
            "license",
            "email",
            "status",
            "date",
            "credits",
            "maintainer",
            "doc",
            "title",
        )
        lines = "".join(f"__{name}__ = 'x'\n" for name in names)
        assert not any("is not read" in warning for warning in load("ops/do-it.py", DESCRIBED + lines)[0].warnings)

    @pytest.mark.spec("S3-62")
    @pytest.mark.parametrize(
        "text", ["", "def main(x): ...\n", "__version__ = '1.0'\n__all__ = []\n", "x = {'tool_id': 1}\n"]
    )
    def test_a_file_without_metadata_is_a_helper(self, text, load):
        assert load("ops/helper.py", text) == []
        assert load("helper.py", text) == []

    @pytest.mark.spec("S3-01")
    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("x = 1\ndef (:\n", "2: invalid syntax; correct the line"),
            (b"# coding: latin-1\n__version__ = '1'\n", " declares the encoding 'latin-1'; save it as UTF-8"),
            (b"x = '\xff'\n", " not UTF-8 at byte 5; save it as UTF-8"),
            (b"x = '\0'\n", " holds a NUL byte; write it as text"),
            ("x = " + "(" * 1000, ""),
        ],
    )  # fmt: skip
    def test_a_file_that_cannot_be_read_is_refused(self, code, message, problems):
        assert problems("ops/broken.py", code)[0].startswith(message)

    def test_a_base_tool_is_refused_with_the_cure(self, problems):
        text = "from tool.bases import BaseTool\nclass Mine(BaseTool): ...\n"
        assert problems("ops/mine.py", text) == [
            (
                "2: Mine is a BaseTool, whose schema only running code can tell; "
                "name its module in modules.tools of toolcrib.toml, or use `crib run FILE`"
            )
        ]

    @pytest.mark.spec("S3-01")
    def test_nothing_of_the_file_runs(self, load, tmp_path):
        marker = tmp_path / "marker"
        act = f"open({str(marker)!r}, 'w').close()"
        load(
            "ops/do-it.py",
            f"{DESCRIBED}{act}\nimport os\nclass A(metaclass={act}): ...\n@{act}\ndef main(x: {act} = {act}) -> {act}: ...\n",
        )
        assert not marker.exists()
