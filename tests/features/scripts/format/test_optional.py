"""The fields that a tool may have, each with what is wrong and what is said then."""

import pytest

from toolcrib import Cost, Limits, RetryPolicy

RETRY = """
retry_policy:
  max_attempts: 3
  backoff_type: exponential
  initial_delay: 1
  max_delay: 60
  backoff_multiplier: 2
"""


class TestCapabilities:
    @pytest.mark.spec("S3-49")
    def test_are_dotted_words_of_any_depth(self, describe):
        tool = describe("requires: [rye.execute.spawn.thread, rye.execute, fs.write, net.call, my-own.thing_2]")
        assert tool.requires == {"rye.execute.spawn.thread", "rye.execute", "fs.write", "net.call", "my-own.thing_2"}

    @pytest.mark.spec("S3-49")
    @pytest.mark.parametrize("written", ["fswrite", "fs.", ".write", "fs write", "fs..write", "net.*", "*", "fs.wrïte"])
    def test_in_another_spelling_are_refused(self, written, faults):
        assert faults(f"requires:\n  - fs.read\n  - '{written}'\n") == [
            f"12: requires[1]: {written!r} is not in dotted notation; write it like fs.write"
        ]

    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("fs.read", "10: requires: must be a list, not text; write one item per line"),
            ("{fs: read}", "10: requires: must be a list, not a mapping; write one item per line"),
            ("null", "10: requires: must be a list, not null; write one item per line"),
            ("[fs.read, 1]", "10: requires[1]: must be text, not a number; write it in quotes"),
            ("[[fs.read]]", "10: requires[0]: must be text, not a list; write it in quotes"),
            ("['']", "10: requires[0]: must be text, not empty text; write it in quotes"),
        ],
    )
    def test_are_a_list_of_texts(self, written, message, faults):
        assert faults(f"requires: {written}") == [message]

    @pytest.mark.spec("S3-64")
    @pytest.mark.parametrize(
        ("executor", "implied", "warned"),
        [
            ("subprocess", {"shell.execute"}, "subprocess needs shell.execute"),
            ("bash", {"shell.execute"}, "bash needs shell.execute"),
            ("http_client", set(), "http_client needs net.http"),
            ("filesystem", set(), "filesystem needs fs.read"),
            ("docker", set(), ""),
            ("python_runtime", set(), ""),
            ("node_runtime", set(), ""),
        ],
    )
    def test_the_own_executor_implies_the_shell_and_warns_of_what_is_not_listed(
        self, executor, implied, warned, describe
    ):
        tool = describe(executor_id=executor)
        assert tool.requires == implied
        place = ".ai/tools/deployment/kubernetes/deploy.yaml:1: requires: "
        assert tool.warnings == ((f"{place}{warned}, which is not listed; add it to requires",) if warned else ())

    @pytest.mark.spec("S3-64")
    @pytest.mark.parametrize(
        ("executor", "listed"),
        [("subprocess", "shell.execute"), ("http_client", "net.call"), ("filesystem", "fs.write")],
    )
    def test_what_is_listed_needs_no_warning(self, executor, listed, describe):
        tool = describe(f"requires: [{listed}]", executor_id=executor)
        assert tool.requires == {listed}
        assert tool.warnings == ()


class TestListsOfWords:
    @pytest.mark.spec("S3-29")
    def test_tags_are_kept_in_order(self, describe):
        assert describe("tags: [kubernetes, rolling-update, cloud]").tags == ("kubernetes", "rolling-update", "cloud")

    @pytest.mark.spec("S3-29")
    @pytest.mark.parametrize("written", ["kubernetes", "{a: b}", "[1]", "[[a]]", "[null]", "['  ']"])
    def test_tags_that_are_no_list_of_texts_are_refused(self, written, faults):
        assert faults(f"tags: {written}")[0].startswith("10: tags")

    def test_hosts_narrow_where_the_network_leads(self, describe):
        assert describe("hosts: [api.example.com, '*.example.org:8443']").run.hosts == (
            "api.example.com",
            "*.example.org:8443",
        )
        assert describe("hosts: []").run.hosts == ()
        assert describe().run.hosts is None

    @pytest.mark.parametrize("host", ["http://example.com", "*", "exa mple.com", "a.*.com", "*.1.2.3.4"])
    def test_a_host_that_no_request_could_have_is_refused(self, host, faults):
        (message,) = faults(f"hosts: [api.example.com, '{host}']")
        assert message.startswith(f"10: hosts[1]: host pattern {host!r} is refused; write ")


class TestTheTimeout:
    @pytest.mark.spec("S3-34")
    def test_is_seconds(self, describe):
        assert describe(timeout="300").limits == Limits(timeout_ms=300_000)
        assert describe(timeout="604800").limits.timeout_ms == 604_800_000

    @pytest.mark.spec("S3-34")
    @pytest.mark.parametrize("written", ["0", "-1", "1.5", "'300'", "true", "null", "[300]", "604801", "300s", ".5"])
    def test_that_is_no_positive_whole_number_is_refused(self, written, faults):
        (message,) = faults(timeout=written)
        assert message.startswith("7: timeout: must be a whole number of seconds from 1 to 604800, not ")

    @pytest.mark.spec("S3-26")
    def test_a_parameter_of_that_name_is_another_thing(self, describe):
        tool = describe("parameters: [{name: timeout, type: integer, default: 7}]", timeout="300")
        assert tool.limits.timeout_ms == 300_000
        assert tool.parameters["properties"]["timeout"]["default"] == 7


class TestTheRetryPolicy:
    @pytest.mark.spec("S3-35")
    def test_has_five_fields_and_makes_the_tool_repeatable(self, describe):
        tool = describe(RETRY)
        policy = RetryPolicy(max_attempts=3, backoff="exponential", initial_delay=1, max_delay=60, multiplier=2)
        assert tool.limits.retry == policy
        assert not policy.jitter
        assert tool.idempotent
        assert [policy.delay_after(1), policy.delay_after(2)] == [1, 2]
        assert not describe().idempotent
        assert describe().limits.retry is None

    @pytest.mark.parametrize("kind", ["linear", "constant"])
    def test_grows_as_it_says(self, kind, describe):
        assert describe(f"retry_policy: {{max_attempts: 2, backoff_type: {kind}}}").limits.retry.backoff == kind

    @pytest.mark.spec("S3-35")
    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("max_attempts: 0", "max_attempts: must be a whole number from 1 to 100, not 0; the first attempt counts"),
            ("max_attempts: 1.5", "max_attempts: must be a whole number from 1 to 100, not 1.5"),
            ("max_attempts: true", "max_attempts: must be a whole number from 1 to 100, not True"),
            ("max_attempts: 101", "max_attempts: must be a whole number from 1 to 100, not 101"),
            ("backoff_type: quadratic", "backoff_type: 'quadratic' is unknown; write one of exponential, linear, constant"),
            ("backoff_type: [linear]", "backoff_type: ['linear'] is unknown"),
            ("initial_delay: -1", "initial_delay: must be a number of at least 0, not -1; write 1"),
            ("max_delay: soon", "max_delay: must be a number of at least 0, not 'soon'; write 60"),
            ("backoff_multiplier: null", "backoff_multiplier: must be a number of at least 0, not None; write 2"),
        ],
    )  # fmt: skip
    def test_that_cannot_be_followed_is_refused(self, written, message, faults):
        attempts = "" if "max_attempts" in written else "max_attempts: 3, "
        assert faults(f"retry_policy: {{{attempts}{written}}}")[0].startswith(f"10: retry_policy.{message}")

    @pytest.mark.parametrize("written", ["3", "[]", "null", "exponential"])
    def test_is_a_mapping(self, written, faults):
        assert faults(f"retry_policy: {written}")[0].startswith("10: retry_policy: must be a mapping, not ")

    def test_an_unknown_key_comes_with_a_warning(self, warnings_of):
        assert warnings_of("retry_policy:\n  max_attempts: 3\n  max_atempts: 3\n  jitter: true\n") == [
            "12: retry_policy.max_atempts: is not read; write max_attempts",
            (
                "13: retry_policy.jitter: is not read; remove it, or write one of max_attempts, backoff_type, initial_delay, "
                "max_delay, backoff_multiplier"
            ),
        ]

    def test_without_attempts_comes_with_a_warning(self, warnings_of):
        assert warnings_of("retry_policy: {max_delay: 3}") == [
            "10: retry_policy: without max_attempts nothing is tried again; write max_attempts: 3"
        ]


class TestTheCost:
    @pytest.mark.spec("S3-36")
    def test_is_read_and_can_be_estimated(self, describe):
        tool = describe("cost: {per_invocation: 0.01, per_minute: 0.05, estimated_duration: 60, currency: USD}")
        assert tool.cost == Cost(per_invocation=0.01, per_minute=0.05, estimated_duration=60, currency="USD")
        assert tool.cost.estimate() == 0.06

    @pytest.mark.spec("S3-36")
    @pytest.mark.parametrize("name", ["per_invocation", "per_minute", "estimated_duration"])
    @pytest.mark.parametrize("written", ["-0.01", "free", "null", "true"])
    def test_that_is_negative_or_no_number_is_refused(self, name, written, faults):
        (message,) = faults(f"cost: {{{name}: {written}}}")
        assert message.startswith(f"10: cost.{name}: must be a number of at least 0, not ")

    def test_that_is_in_no_currency_is_refused(self, faults):
        assert faults("cost: {currency: 1}") == ["10: cost.currency: must be the name of a currency; write USD"]
        assert faults("cost: 1") == ["10: cost: must be a mapping, not a number; write one key per line"]

    def test_an_unknown_key_comes_with_a_warning(self, warnings_of):
        assert warnings_of("cost: {per_hour: 1}") == [
            "10: cost.per_hour: is not read; remove it, or write one of per_invocation, per_minute, estimated_duration, currency"
        ]


class TestTheDocumentation:
    @pytest.mark.spec("S3-37")
    def test_shows_the_link_and_the_texts(self, describe):
        tool = describe(documentation='{url: "https://docs.example.com/x", examples: [Deploy it, Scale it]}')
        assert tool.documentation == "See https://docs.example.com/x\n\nExamples:\n- Deploy it\n- Scale it"
        assert tool.examples == ()

    def test_an_example_with_arguments_can_be_run(self, describe):
        examples = "{examples: [Deploy it, {arguments: {replicas: 3}, description: Three of them}]}"
        tool = describe("parameters: [{name: replicas, type: integer, required: true}]", documentation=examples)
        assert tool.examples == ({"replicas": 3},)
        assert tool.documentation == "Examples:\n- Deploy it\n- Three of them"

    def test_an_example_that_its_own_schema_refuses_comes_with_a_warning(self, warnings_of):
        found = warnings_of(
            "parameters:\n  - {name: replicas, type: integer, required: true, minimum: 1, description: How many}\n",
            documentation="{examples: [{arguments: {replicas: 0}}, {arguments: {}, action: none}]}",
        )
        assert found == [
            "8: documentation.examples[0].arguments: deploy-service would refuse them; correct them",
            "8: documentation.examples[1]: there is no action 'none'; name one of ",
        ]

    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("text", "8: documentation: must be a mapping, not text; write one key per line"),
            ("{url: 1}", "8: documentation.url: must be text, not a number; write the address of a page"),
            ("{examples: x}", "8: documentation.examples: must be a list, not text; write one item per example"),
            ("{examples: [1]}", "8: documentation.examples[0]: must be text, or a mapping with arguments; write arguments: {name: value}"),
            ("{examples: [{arguments: 1}]}", "8: documentation.examples[0]: must be text, or a mapping with arguments"),
            ("{examples: [{arguments: {}, action: 1}]}", "8: documentation.examples[0]: must be text, or a mapping"),
        ],
    )  # fmt: skip
    def test_of_another_shape_is_refused(self, written, message, faults):
        assert faults(documentation=written)[0].startswith(message)


class TestTheMetadata:
    @pytest.mark.spec("S3-38")
    def test_is_kept_for_people_to_read(self, describe):
        tool = describe(
            "metadata: {author: platform-team, deprecated: false, experimental: true, stability: stable, anything: [1]}"
        )
        assert tool.metadata == {
            "author": "platform-team",
            "deprecated": False,
            "experimental": True,
            "stability": "stable",
            "anything": [1],
        }
        assert not tool.deprecated

    @pytest.mark.spec("S3-38")
    def test_a_deprecated_tool_is_known_as_one(self, describe):
        assert describe("metadata: {deprecated: true}").deprecated

    @pytest.mark.parametrize("name", ["deprecated", "experimental"])
    @pytest.mark.parametrize("written", ["yes", "1", "null"])
    def test_a_switch_is_true_or_false(self, name, written, faults):
        assert faults(f"metadata: {{{name}: {written}}}")[0].startswith(
            f"10: metadata.{name}: must be true or false, not "
        )

    def test_is_a_mapping(self, faults):
        assert faults("metadata: [a]") == ["10: metadata: must be a mapping, not a list; write one key per line"]


class TestTheConfig:
    def test_is_kept_word_for_word(self, describe):
        config = {"url": "{url}", "body": {"a": ["${X:-1}", 2, None]}, "shell": True, "env": {"A": "1", "B": 2}}
        assert (
            describe(
                'config: {url: "{url}", body: {a: ["${X:-1}", 2, null]}, shell: true, env: {A: "1", B: 2}}'
            ).run.config
            == config
        )

    def test_variables_may_be_a_list_of_names(self, describe):
        assert describe("config: {env: [KUBECONFIG, AWS_CREDENTIALS]}").run.config == {
            "env": ["KUBECONFIG", "AWS_CREDENTIALS"]
        }

    @pytest.mark.parametrize(
        ("written", "at"),
        [("KUBECONFIG", ""), ("1", ""), ("[A=1]", "[0]"), ("[A, 1]", "[1]"), ("{A: {b: 1}}", ".A"), ("{A: [b]}", ".A")],
    )
    def test_other_variables_are_refused(self, written, at, faults):
        assert faults(f"config: {{env: {written}}}") == [
            f"10: config.env{at}: write env as a mapping of names to values, or as a list of names of host variables"
        ]

    def test_arguments_are_a_list(self, faults):
        assert faults("config: {args: deploy.py --now}") == [
            "10: config.args: must be a list, not text; write one item per word"
        ]
        assert faults("config: deploy.py") == ["10: config: must be a mapping, not text; write one key per line"]


def test_an_unknown_field_comes_with_a_warning_and_the_one_that_was_meant(warnings_of):
    assert warnings_of("requiers: []\nlicence: MIT\n") == [
        "10: requiers: is not read; write requires",
        "11: licence: is not read; remove it, or write it under metadata",
    ]


class TestRequests:
    @pytest.mark.parametrize("config", ["{}", "{method: GET}", "{method: head}", "{method: PUT}", "{method: DELETE}"])
    def test_that_come_to_the_same_twice_may_be_sent_again(self, config, describe):
        assert describe(f"config: {config}", executor_id="http_client").idempotent

    @pytest.mark.parametrize(
        "config",
        ["{method: POST}", "{method: PATCH}", "{method: '{method}'}", "{method: '${METHOD}'}", "{method: [GET]}"],
    )
    def test_others_are_sent_once(self, config, describe):
        assert not describe(f"config: {config}", executor_id="http_client").idempotent

    def test_only_requests_are_known_to(self, describe):
        assert not describe("config: {method: GET}").idempotent
        assert not describe("config: {method: GET}", tool_type="runtime", executor_id="http_client").idempotent
