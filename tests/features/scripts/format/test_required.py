"""The six fields that every tool has, and what is said when one is missing or wrong."""

import json
from pathlib import Path

import pytest

from toolcrib.features.scripts.format import ScriptFile
from toolcrib.model.tool import Chained, Origin

REQUIRED = ["tool_id", "category", "tool_type", "version", "description", "executor_id"]
PYTHON = {
    "__version__": '"1.0.0"',
    "__tool_type__": '"script"',
    "__executor_id__": '"python_runtime"',
    "__category__": '"ops"',
    "__tool_description__": '"Deploy."',
}


@pytest.mark.spec("S3-01", "S3-07")
def test_a_minimal_tool_has_everything_that_it_was_given(describe):
    tool = describe()
    assert (tool.name, tool.slug, tool.version) == ("deploy-service", "deploy-service", "1.0.0")
    assert tool.category == "deployment/kubernetes"
    assert tool.behaviour is None
    assert tool.description == "Deploy a service; fails if the cluster refuses"
    assert tool.source_type == "script"
    assert tool.run == Chained(
        kind="script",
        tool_type="script",
        executor="python_runtime",
        folder=Path(".ai/tools/deployment/kubernetes"),
    )
    assert tool.parameters == {"type": "object"}
    assert tool.origin == Origin(place=".ai/tools/deployment/kubernetes/deploy.yaml", line=1)
    assert tool.warnings == ()
    assert len(tool.content_hash) == 64


@pytest.mark.spec("S3-43", "S3-05", "S3-06", "S3-07", "S3-08", "S3-09", "S3-10", "S3-44")
@pytest.mark.parametrize("name", [name for name in REQUIRED if name != "tool_id"])
def test_a_description_without_one_of_the_others_is_refused_with_a_line_to_copy(name, faults):
    samples = {
        "category": "deployment/kubernetes", "tool_type": "script", "version": "1.0.0",
        "description": "What the tool does", "executor_id": "python_runtime",
    }  # fmt: skip
    assert faults(**{name: None}) == [f'1: {name}: is missing; write {name}: "{samples[name]}"']


@pytest.mark.spec("S3-43")
@pytest.mark.parametrize("name", [name for name in REQUIRED if name != "tool_id"])
@pytest.mark.parametrize("kind", ["json", "toml"])
def test_so_are_those_in_json_and_toml(kind, name, problems):
    fields = {"tool_id": "a-b", "category": "x", "tool_type": "script", "version": "1.0.0", "description": "D"}
    fields["executor_id"] = "bash"
    del fields[name]
    if kind == "json":
        text, sample = json.dumps(fields), f'"{name}": '
    else:
        text, sample = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items()), f"{name} = "
    (message,) = problems(f"x/tool.{kind}", text)
    assert message.startswith(f"1: {name}: is missing; write {sample}")


@pytest.mark.spec("S3-43", "S3-44", "S3-12")
@pytest.mark.parametrize("name", PYTHON)
def test_a_python_file_needs_the_other_five(name, problems):
    text = '"""A docstring is not a description."""\n' + "".join(
        f"{key} = {PYTHON[key]}\n" for key in PYTHON if key != name
    )
    (message,) = problems("ops/deploy-it.py", text)
    assert message.startswith(f"1: {name}: is missing; write {name} = ")


@pytest.mark.spec("S3-43", "S3-44", "S3-13")
@pytest.mark.parametrize("name", ["version", "tool_type", "executor_id", "category", "description"])
@pytest.mark.parametrize("language", ["javascript", "bash"])
def test_a_file_with_comments_needs_them_too(language, name, problems):
    fields = {"version": "1.0.0", "tool_type": "script", "executor_id": "bash", "category": "ops", "description": "D."}
    lines = [(key, value) for key, value in fields.items() if key != name]
    if language == "javascript":
        text = "/**\n" + "".join(f" * @{key} {value}\n" for key, value in lines) + " */\nmain()\n"
        (message,) = problems("ops/do-it.js", text)
        assert message.startswith(f"1: @{name}: is missing; write @{name} ")
    else:
        text = "#!/bin/bash\n" + "".join(f"# {key}: {value}\n" for key, value in lines)
        (message,) = problems("ops/do-it.sh", text)
        assert message.startswith(f"1: # {name}: is missing; write # {name}: ")


@pytest.mark.parametrize(
    ("name", "text", "cure"),
    [
        ("do-it.js", "/** @tool_type script */", "@executor_id node_runtime"),
        ("do-it.mjs", "/**\n * @tool_type script\n * @executor_id null\n */", "@executor_id node_runtime"),
        ("do-it.sh", "# tool_type: script\n", "# executor_id: bash"),
        ("do-it.py", "__tool_type__ = 'script'\n", '__executor_id__ = "python_runtime"'),
    ],
)
def test_the_executor_that_is_proposed_fits_the_language(name, text, cure, problems):
    (message,) = [message for message in problems(f"ops/{name}", text) if "executor_id" in message.split(": ")[1]]
    assert message.endswith(cure)


@pytest.mark.parametrize("changes", [{"tool_id": None, "tool-id": "a-b"}, {"tool_type": None, "tool-type": "script"}])
def test_a_name_with_a_dash_is_recognised(changes, faults):
    meant, written = changes
    assert faults(**changes) == [f"1: {meant}: is missing; write {meant} instead of {written}"]


def test_a_file_whose_names_all_have_dashes_is_no_data(faults):
    changes = {"tool_id": None, "tool_type": None, "executor_id": None}
    found = faults(**changes, **{"tool-id": "a-b", "tool-type": "script", "executor-id": "bash"})
    assert sorted(message.split("; ")[1] for message in found) == [
        f"write {name} instead of {name.replace('_', '-')}" for name in sorted(changes)
    ]


def test_all_that_is_wrong_is_told_at_once(faults):
    assert faults("timeout: -1\ntags: x\n", timeout=None, version="1.0", tool_id="Deploy", category=None) == [
        "1: tool_id: 'Deploy' is not in kebab-case; write tool_id: \"deploy\"",
        '1: category: is missing; write category: "deployment/kubernetes"',
        '3: version: must be text, not a number; write version: "1.0.0"',
        "9: tags: must be a list, not text; write one item per line",
        "8: timeout: must be a whole number of seconds from 1 to 604800, not -1; write 300",
    ]


class TestTheName:
    @pytest.mark.spec("S3-05", "S3-45")
    @pytest.mark.parametrize(
        ("name", "cure"),
        [
            ("DeployService", "deploy-service"),
            ("deploy service", "deploy-service"),
            ("deploy--service", "deploy-service"),
            ("-deploy", "deploy"),
            ("deploy-", "deploy"),
            ("deploy.service", "deploy-service"),
            ("dienst-ä", "dienst"),
            ("Ä", "deploy-service"),
        ],
    )
    def test_another_than_kebab_case_is_refused_with_the_right_one(self, name, cure, faults):
        assert faults(tool_id=name) == [f'1: tool_id: {name!r} is not in kebab-case; write tool_id: "{cure}"']

    @pytest.mark.spec("S3-05")
    @pytest.mark.parametrize("name", ['""', '"  "'])
    def test_an_empty_one_is_refused(self, name, faults):
        assert faults(tool_id=name) == ['1: tool_id: is empty; write tool_id: "deploy-service"']

    @pytest.mark.parametrize("name", ["12", "true", "[a]", "{}", "null"])
    def test_one_that_is_no_text_is_refused(self, name, faults):
        assert "tool_id: must be text, not " in faults(tool_id=name)[0]

    def test_a_long_one_is_refused(self, faults):
        assert faults(tool_id="a" * 65) == ["1: tool_id: is longer than 64 characters; shorten it"]

    @pytest.mark.spec("S3-52")
    def test_an_underscore_is_accepted_with_a_warning(self, describe):
        tool = describe(tool_id="deploy_service")
        assert (tool.name, tool.slug) == ("deploy_service", "deploy-service")
        assert tool.warnings == (
            (
                ".ai/tools/deployment/kubernetes/deploy.yaml:1: tool_id: 'deploy_service' is not in kebab-case; "
                'write tool_id: "deploy-service"'
            ),
        )

    @pytest.mark.spec("S3-39")
    def test_a_file_of_code_names_its_tool_unless_it_says_otherwise(self, load):
        text = "".join(f"{key} = {value}\n" for key, value in PYTHON.items()) + "def main(): ...\n"
        assert load("ops/deploy-it.py", text)[0].name == "deploy-it"
        assert load("ops/deploy-it.py", text + '__tool_id__ = "other-one"\n')[0].name == "other-one"

    def test_a_file_of_code_with_a_name_that_no_tool_has_is_refused(self, problems):
        text = "".join(f"{key} = {value}\n" for key, value in PYTHON.items())
        assert problems("ops/DeployIt.py", text) == [
            '1: __tool_id__: the name of the file is not in kebab-case; rename it, or write __tool_id__ = "deploy-it"'
        ]


class TestTheCategory:
    @pytest.mark.spec("S3-06", "S3-46")
    @pytest.mark.parametrize(
        ("name", "category"),
        [
            ("deployment/kubernetes/deploy.yaml", "deployment/kubernetes"),
            ("deployment/deploy-service.yaml", "deployment"),
        ],
    )
    def test_is_the_folder_of_the_file(self, name, category, load):
        text = f'tool_id: a-b\ncategory: {category}\ntool_type: script\nversion: "1.0.0"\ndescription: D\nexecutor_id: bash\n'
        assert load(name, text)[0].category == category

    @pytest.mark.spec("S3-06", "S3-46")
    @pytest.mark.parametrize(
        "written", ["deployment", "kubernetes", "deployment/kubernetes/", "Deployment/kubernetes", "../x"]
    )
    def test_another_is_refused_with_the_right_one(self, written, faults):
        assert faults(category=written) == [
            (f"2: category: {written!r} is not the folder of the file; "
            'write category: "deployment/kubernetes"')
        ]  # fmt: skip

    @pytest.mark.spec("S3-06")
    def test_an_empty_one_is_refused(self, faults):
        assert faults(category='""') == ['2: category: is empty; write category: "deployment/kubernetes"']

    def test_a_file_directly_in_the_root_is_refused_with_the_cure(self, problems):
        text = 'tool_id: a-b\ncategory: x\ntool_type: script\nversion: "1.0.0"\ndescription: D\nexecutor_id: bash\n'
        assert problems("tool.yaml", text) == [
            "2: category: the file must lie in a sub-folder of .ai/tools, which is then its category; move it into one"
        ]

    def test_a_file_outside_of_the_root_is_refused(self):
        text = b'tool_id: a-b\ncategory: x\ntool_type: script\nversion: "1.0.0"\ndescription: D\nexecutor_id: bash\n'
        with pytest.raises(Exception, match="must lie in a sub-folder of"):
            ScriptFile(Path("a/tools")).read(Path("b/tools/x/tool.yaml"), text)

    def test_is_no_behaviour_even_if_it_reads_like_one(self, load):
        text = 'tool_id: a-b\ncategory: utility\ntool_type: x\nversion: "1.0.0"\ndescription: D\nexecutor_id: bash\n'
        (tool,) = load("utility/tool.yaml", text)
        assert (tool.category, tool.behaviour) == ("utility", None)


class TestTheVersion:
    @pytest.mark.spec("S3-08", "S3-47")
    @pytest.mark.parametrize("written", ['"1.0.0"', "1.0.0", '"0.0.1"', '"10.20.30"'])
    def test_three_numbers_are_accepted(self, written, describe):
        assert describe(version=written).version == written.strip('"')

    @pytest.mark.spec("S3-08", "S3-47")
    @pytest.mark.parametrize("written", ["1.0", "1", "true"])
    def test_what_yaml_reads_as_a_number_is_refused(self, written, faults):
        kind = "a boolean" if written == "true" else "a number"
        assert faults(version=written) == [f'4: version: must be text, not {kind}; write version: "1.0.0"']

    @pytest.mark.spec("S3-08", "S3-47")
    @pytest.mark.parametrize("written", ["1.0", "1", "v1.0.0", "1.0.0-beta", "1.0.0.0", "1.0.٣", "1..0", "1.0.0\\n2"])
    def test_another_text_is_refused(self, written, faults):
        (message,) = faults(version=f'"{written}"')
        assert message.endswith(' is not X.Y.Z; write version: "1.0.0"')


class TestTheOtherTexts:
    @pytest.mark.spec("S3-07", "S3-09")
    @pytest.mark.parametrize("name", ["tool_type", "description"])
    @pytest.mark.parametrize(
        ("written", "words"),
        [
            ('""', "is empty"),
            ('" "', "is empty"),
            ("null", "must be text, not null"),
            ("[a]", "must be text, not a list"),
        ],
    )
    def test_are_refused_if_they_say_nothing(self, name, written, words, faults):
        line = {"tool_type": 3, "description": 5}[name]
        assert faults(**{name: written})[0].startswith(f"{line}: {name}: {words}; write {name}: ")

    @pytest.mark.spec("S3-07")
    @pytest.mark.parametrize("kind", ["script", "python", "javascript", "anything at all"])
    def test_any_type_is_kept_word_for_word(self, kind, describe):
        tool = describe(tool_type=kind)
        assert tool.source_type == kind
        assert tool.run.tool_type == kind


class TestTheExecutor:
    @pytest.mark.spec("S3-50", "S3-59", "S3-60")
    @pytest.mark.parametrize("kind", ["primitive", "runtime", "library"])
    def test_may_be_null_for_what_nothing_executes(self, kind, describe):
        tool = describe(tool_type=kind, executor_id="null")
        assert tool.run.executor is None
        assert tool.kind == kind

    @pytest.mark.spec("S3-10", "S3-50")
    @pytest.mark.parametrize("kind", ["script", "http", "python", "javascript"])
    def test_may_not_be_null_for_what_is_executed(self, kind, faults):
        assert faults(tool_type=kind, executor_id="null") == [
            (
                f"6: executor_id: null is for library, primitive, runtime; name what runs a {kind!r}: "
                'executor_id: "python_runtime"'
            )
        ]

    @pytest.mark.parametrize("written", ["12", "[a]", "false"])
    def test_is_text_otherwise(self, written, faults):
        assert "executor_id: must be text, not " in faults(executor_id=written)[0]

    @pytest.mark.parametrize(
        ("executor", "kind"),
        [
            ("http_client", "http"), ("subprocess", "subprocess"), ("docker", "docker"), ("filesystem", "filesystem"),
            ("python_runtime", "script"), ("node_runtime", "script"), ("my-own", "script"),
        ],
    )  # fmt: skip
    def test_decides_the_kind(self, executor, kind, describe):
        assert describe(executor_id=executor).kind == kind

    def test_a_runtime_stays_one_with_any_executor(self, describe):
        assert describe(tool_type="runtime", executor_id="subprocess").kind == "runtime"
        assert describe(tool_type="library", executor_id="subprocess").kind == "library"

    @pytest.mark.spec("S3-59")
    def test_a_runtime_that_starts_nothing_comes_with_a_warning(self, describe):
        tool = describe(tool_type="runtime", executor_id="null")
        assert tool.warnings == (
            (
                ".ai/tools/deployment/kubernetes/deploy.yaml:1: config: a runtime without executor runs nothing; "
                "write config: {command: …}"
            ),
        )
        assert describe("config: {command: ruby}", tool_type="runtime", executor_id="null").warnings == ()


@pytest.mark.spec("S3-03")
def test_versions_need_no_repository(tmp_path):
    folder = tmp_path / "ops"
    folder.mkdir()
    text = b'tool_id: a-b\ncategory: ops\ntool_type: script\nversion: "2.3.4"\ndescription: D\nexecutor_id: bash\n'
    (folder / "tool.yaml").write_bytes(text)
    (tool,) = ScriptFile(tmp_path).read(folder / "tool.yaml", text)
    assert tool.version == "2.3.4"
