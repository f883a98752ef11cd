"""Actions: each is a tool of its own, with its own parameters."""

import pytest

from toolcrib.lib.schema import compile_schema

PARAMETERS = "parameters: [{name: service_name, type: string, required: true}]\n"


def accepts(tool, **arguments) -> bool:
    return compile_schema(tool.parameters).is_valid(arguments)


class TestActions:
    MAPPING = """
    actions:
      deploy:
        description: "Deploy service"
        parameters:
          - name: service_name
            type: string
            required: true
            description: Which
            minLength: 1

      rollback:
        description: "Rollback to previous version"
        parameters:
          - name: deployment_id
            type: string
            required: true
            description: Which
            minLength: 1
    """

    @pytest.mark.spec("S3-28")
    def test_each_is_a_tool_with_its_own_parameters(self, describe_all):
        deploy, rollback = describe_all(self.MAPPING)
        assert [tool.name for tool in (deploy, rollback)] == ["deploy-service-deploy", "deploy-service-rollback"]
        assert [tool.run.action for tool in (deploy, rollback)] == ["deploy", "rollback"]
        assert deploy.description == "Deploy service"
        assert accepts(deploy, service_name="a")
        assert not accepts(deploy, deployment_id="a")
        assert not accepts(rollback, service_name="a")
        assert deploy.limits == rollback.limits
        assert deploy.output_schema == {"type": "string"}
        assert (deploy.origin.line, rollback.origin.line) == (12, 21)

    def test_a_list_says_the_same(self, describe_all):
        found = describe_all(
            "actions: [{name: deploy, description: D, parameters: []}, {name: roll-back, description: R}]",
            tool_id="deploy_service",
        )
        assert [tool.name for tool in found] == ["deploy_service_deploy", "deploy_service_roll-back"]
        assert found[1].parameters == {"type": "object"}

    def test_a_tool_that_takes_arguments_of_its_own_can_be_called_without_an_action(self, describe_all):
        found = describe_all(PARAMETERS + "actions: {deploy: {description: D}}")
        assert [(tool.name, tool.run.action) for tool in found] == [
            ("deploy-service", ""),
            ("deploy-service-deploy", "deploy"),
        ]

    def test_an_example_belongs_to_the_action_that_it_names(self, describe_all):
        examples = "{examples: [{action: rollback, arguments: {deployment_id: a}}]}"
        deploy, rollback = describe_all(self.MAPPING, documentation=examples)
        assert (deploy.examples, rollback.examples) == ((), ({"deployment_id": "a"},))

    def test_an_own_answer_counts_before_that_of_the_tool(self, describe_all):
        (tool,) = describe_all("actions: {deploy: {description: D, outputs: {type: integer}}}")
        assert tool.output_schema == {"type": "integer"}

    def test_what_is_said_about_the_file_is_said_once(self, describe_all):
        deploy, rollback = describe_all("actions: {deploy: null, rollback: {description: R, extra: 1}}")
        assert [warning.split(":", 2)[2].strip() for warning in deploy.warnings] == [
            "actions.deploy: has no description; write what the action does",
            (
                "actions.rollback.extra: is not read; remove it, or write one of name, description, parameters, input_schema, "
                "outputs, output_schema"
            ),
        ]
        assert deploy.description == "Deploy a service; fails if the cluster refuses"
        assert rollback.warnings == ()

    @pytest.mark.spec("S3-28")
    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("deploy", "10: actions: must be a mapping or a list, not text; write one key per action"),
            ("{deploy: 1}", "10: actions.deploy: must be a mapping, not a number; write description and parameters"),
            ("{DeployIt: {description: D}}", "10: actions.DeployIt: 'DeployIt' cannot be the name of an action; write deploy-it"),
            ("[{description: D}]", "10: actions[0]: None cannot be the name of an action; write deploy"),
            ("[deploy]", "10: actions[0]: must be a mapping, not text"),
            ("{deploy: {description: ''}}", "10: actions.deploy.description: must be text that is not empty; write what the action does"),
            ("{deploy: {description: D, parameters: x}}", "10: actions.deploy.parameters: must be a list, not text"),
            ("[{name: a, description: D}, {name: a, description: D}]", "10: actions[1]: there are two of the name deploy-service-a; rename one"),
            ("{a-b: {description: D}, a_b: {description: D}}", "10: actions.a_b: there are two of the name deploy-service-a-b"),
        ],
    )  # fmt: skip
    def test_that_cannot_be_called_are_refused(self, written, message, faults):
        assert faults(f"actions: {written}")[0].startswith(message)

    def test_a_name_that_becomes_too_long_is_refused(self, faults):
        assert (
            "is longer than 64 characters; shorten one of the names"
            in faults(f"actions: {{{'a' * 60}: {{description: D}}}}")[0]
        )
