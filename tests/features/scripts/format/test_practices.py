"""What a good tool does beyond what it must is advice: the tool loads, and its author hears of it."""

import pytest

PARAMETER = "{{name: {}, type: {}, required: true, description: X{}}}"


class TestNames:
    @pytest.mark.spec("S3-52")
    def test_one_word_says_little(self, warnings_of):
        assert warnings_of(tool_id="deploy") == [
            "1: tool_id: 'deploy' says little; name the action and its object, such as resize-pool"
        ]

    @pytest.mark.spec("S3-52")
    @pytest.mark.parametrize("kind", ["primitive", "runtime", "library"])
    def test_one_word_is_enough_for_what_others_build_on(self, kind, warnings_of):
        found = warnings_of("config: {command: x}", tool_id="ruby", tool_type=kind, executor_id="null")
        assert found == []


class TestParameters:
    @pytest.mark.spec("S3-53")
    @pytest.mark.parametrize("name", ["serviceName", "service-name", "Service", "_x"])
    def test_are_in_snake_case(self, name, warnings_of):
        found = warnings_of(f"parameters:\n  - {PARAMETER.format(name, 'boolean', '')}\n")
        assert found == [f"11: parameters[0].name: {name!r} is not in snake_case; rename it"]

    @pytest.mark.spec("S3-53")
    def test_have_a_description_and_say_whether_they_are_required(self, warnings_of):
        assert warnings_of("parameters:\n  - name: x\n    type: boolean\n") == [
            "11: parameters[0]: has no description; write what it means",
            "11: parameters[0]: does not say whether it is required; write required: false",
        ]

    @pytest.mark.spec("S3-53")
    @pytest.mark.parametrize(
        ("kind", "constraint", "warned"),
        [
            ("string", "", True), ("integer", "", True), ("float", "", True), ("boolean", "", False), ("object", "", False),
            ("string", ", enum: [a]", False), ("string", ", pattern: a", False), ("integer", ", minimum: 1", False),
        ],
    )  # fmt: skip
    def test_have_constraints(self, kind, constraint, warned, warnings_of):
        found = warnings_of(f"parameters:\n  - {PARAMETER.format('x', kind, constraint)}\n")
        assert found == (
            ["10: parameters: nothing constrains x; add minimum, maximum, pattern or enum"] if warned else []
        )

    def test_of_actions_are_looked_at_too(self, warnings_of):
        found = warnings_of("actions:\n  go:\n    description: D\n    parameters: [{name: X, type: boolean}]\n")
        assert [warning.split(": ")[1] for warning in found] == [
            "actions.go.parameters[0].name",
            "actions.go.parameters[0]",
            "actions.go.parameters[0]",
        ]


class TestDocumentation:
    @pytest.mark.spec("S3-54")
    @pytest.mark.parametrize("text", ["Run deploy_k8s.py or fail", "Starts x.sh; fails without it"])
    def test_says_what_and_not_how(self, text, warnings_of):
        assert warnings_of(description=text) == [
            "5: description: names a file, which says how it is done; say what the tool does"
        ]

    @pytest.mark.spec("S3-54", "S3-67")
    def test_what_is_not_told_is_asked_for_once(self, warnings_of):
        assert warnings_of(timeout=None, documentation=None, outputs=None, description="Deploy") == [
            "1: says nothing about examples, outputs, a timeout, the errors to expect; add documentation, outputs or timeout"
        ]

    @pytest.mark.spec("S3-67")
    @pytest.mark.parametrize(
        ("changes", "missing"),
        [
            ({"timeout": None}, "a timeout"),
            ({"description": "Deploy"}, "the errors to expect"),
            ({"documentation": None}, "examples"),
            ({"outputs": None}, "outputs"),
        ],
    )
    def test_each_of_it_counts(self, changes, missing, warnings_of):
        assert warnings_of(**changes) == [
            f"1: says nothing about {missing}; add documentation, outputs or timeout"
        ]  # fmt: skip
