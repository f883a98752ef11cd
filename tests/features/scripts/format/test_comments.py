"""JavaScript and Bash files: metadata in the comments at their beginning."""

import pytest

HEADER = " * @version 1.0.0\n * @tool_type javascript\n * @executor_id node_runtime\n * @category ops\n"


class TestJavaScript:
    @pytest.mark.spec("S3-13")
    @pytest.mark.parametrize(
        "declaration",
        [
            "const __tool_description__ = 'It\\'s \\u00e4 \\ud83d\\ude00 \"tool\"';",
            'export const __tool_description__ = "It\'s \\u00e4 😀 \\"tool\\"" // here',
            'let __tool_description__ = `It\'s ä 😀 "tool"`',
            'var __tool_description__ =\n  "It\'s ä 😀 \\"tool\\""',
        ],
    )
    def test_a_literal_variable_may_describe_the_tool(self, declaration, load):
        (tool,) = load("ops/do-it.js", f"/**\n{HEADER} */\nconst a = 1;\n{declaration}\n")
        assert tool.description == 'It\'s ä 😀 "tool"'

    def test_the_tag_counts_before_the_variable(self, load):
        text = f"/**\n{HEADER} * @description The tag\n */\nconst __tool_description__ = 'The variable';\n"
        assert load("ops/do-it.js", text)[0].description == "The tag"

    @pytest.mark.spec("S3-13")
    @pytest.mark.parametrize("value", ["describe()", "'a' + 'b'", "`a ${b}`", "", "'open", "1"])
    def test_a_variable_that_is_no_literal_is_refused(self, value, problems):
        (message,) = problems("ops/do-it.js", f"/**\n{HEADER} */\nconst __tool_description__ = {value}\n")
        assert message == "7: __tool_description__: is not a literal on one line; write the text itself in quotes"

    @pytest.mark.spec("S3-13")
    @pytest.mark.parametrize(
        "text",
        [
            "/* const __tool_description__ = 'x' */",
            "`\nconst __tool_description__ = 'x'\n`",
            "  const __tool_description__ = 'x'",
            "// const __tool_description__ = 'x'",
        ],
    )
    def test_what_only_looks_like_the_variable_describes_nothing(self, text, problems):
        (message,) = problems("ops/do-it.js", f"/**\n{HEADER} */\n{text}\n")
        assert message == "1: @description: is missing; write @description What the tool does"

    def test_values_go_on_over_several_lines(self, load):
        text = f"""
/*! @license of somebody */
/**
{HEADER} * @description Look up
 *   the weather
 * of a city
 *
 * Prose that belongs to nothing.
 * @timeout 30
 *
 * More prose.
 * @requires fs.read, fs.write
 * @tags [a,
 *   b]
 * @config {{
 *   "command": "x",
 *   "args": ["@file"]
 * }}
 * @parameters
 *   - name: city
 *     type: string
 *
 *   - name: days
 *     type: integer
 * @returns {{string}} nothing that we read
 */
"""
        (tool,) = load("ops/do-it.js", text)
        assert tool.description == "Look up the weather of a city"
        assert tool.limits.timeout_ms == 30_000
        assert tool.requires == {"fs.read", "fs.write"}
        assert tool.tags == ("a", "b")
        assert tool.run.config == {"command": "x", "args": ["@file"]}
        assert list(tool.parameters["properties"]) == ["city", "days"]

    def test_a_fault_inside_of_a_value_is_told_at_its_own_line(self, problems):
        text = f"/**\n{HEADER} * @description D\n * @parameters\n *   - name: city\n *     type: strong\n * @config {{a: [\n */\n"
        first, second = problems("ops/do-it.js", text)
        assert first == "11: did not find expected node content; correct the YAML there"
        assert second.startswith("9: @parameters[0].type: 'strong' is unknown")

    def test_a_tag_stands_once(self, problems):
        text = f"/**\n{HEADER} * @description D\n * @requires fs.read\n * @requires fs.write\n */\n"
        assert problems("ops/do-it.js", text) == ["8: requires: stands twice; write it once, several values as a list"]

    def test_a_slip_of_the_pen_comes_with_a_warning_and_other_tags_do_not(self, load):
        text = f"/**\n{HEADER} * @description D\n * @requries fs.read\n * @returns x\n * @param y\n * @author z\n * @type q\n */\n"
        found = [warning for warning in load("ops/do-it.js", text)[0].warnings if "is not read" in warning]
        assert found == [".ai/tools/ops/do-it.js:7: @requries: is not read; write @requires"]

    RUN = "// @version 1.0.0\n// @tool_type javascript\n// @executor_id node_runtime\n// @category ops\n"

    @pytest.mark.spec("S3-13")
    @pytest.mark.parametrize("before", ["", "#!/usr/bin/env node\n", "'use strict';\n", "\n/* @license MIT */\n", "  "])
    def test_a_run_of_line_comments_is_a_header_too(self, before, load):
        text = f"{before}{self.RUN}\n// @description Look up\n//   the weather\n//@timeout 30\nmain();\n// @tags a\n"
        (tool,) = load("ops/do-it.js", text)
        assert tool.description == "Look up the weather"
        assert tool.limits.timeout_ms == 30_000
        assert (tool.run.executor, tool.tags) == ("node_runtime", ())

    def test_a_fault_in_a_run_is_told_at_its_own_line(self, problems):
        text = f"#!/usr/bin/env node\n\n// Prose.\n{self.RUN}\n// @description D\n// @timeout x\n".replace(
            "// @cat", "   // @cat"
        )
        assert problems("ops/do-it.js", text)[0].startswith("10: @timeout: must be a whole number")

    @pytest.mark.spec("S3-13")
    @pytest.mark.parametrize(
        ("begin", "margin", "end"), [("/**\n", " * ", " */\n"), ("", "// ", ""), ("/*\n", "   ", "*/\n")]
    )
    def test_a_header_may_be_written_with_colons(self, begin, margin, end, load):
        facts = ["Prose about it.", "version: 1.0.0", "tool_type: javascript", "executor_id: node_runtime"]
        facts += ["category: ops", "description: Look up", "@timeout 30", "Note: nothing of ours"]
        text = begin + "".join(f"{margin}{fact}\n" for fact in facts) + end + "main();\n"
        (tool,) = load("ops/do-it.js", text)
        assert (tool.description, tool.limits.timeout_ms) == ("Look up", 30_000)

    def test_colons_are_prose_beside_tags(self, load):
        text = f"/**\n{HEADER} * @description Look up\n * requires: nothing\n * tags: none\n */\n"
        (tool,) = load("ops/do-it.js", text)
        assert tool.description == "Look up requires: nothing tags: none"
        assert (tool.requires, tool.tags) == (frozenset(), ())

    @pytest.mark.spec("S3-13")
    @pytest.mark.parametrize(
        ("text", "line", "name"),
        [
            ("// tool_type: javascript\n// executor_id: node_runtime\n", 1, "tool_type"),
            ("/**\n * version = 1.0.0\n * executor_id = node_runtime\n */\n", 3, "executor_id"),
            ("#!/usr/bin/env node\n/**\n *    @tool_type javascript\n *    @version 1.0.0\n */\n", 3, "tool_type"),
        ],
    )
    def test_a_header_that_is_not_read_is_reported(self, text, line, name, problems):
        assert problems("ops/do-it.js", text) == [
            f"{line}: {name}: is not read; write @{name} at the beginning of the line, without a colon"
        ]

    def test_an_executor_may_be_null(self, load):
        text = f"/**\n{HEADER} * @description D\n */\n".replace("javascript", "library").replace("node_runtime", "null")
        assert load("ops/do-it.js", text)[0].run.executor is None

    @pytest.mark.spec("S3-62")
    @pytest.mark.parametrize(
        "text",
        ["", "module.exports = {};", "/** Helps. */\n", "/**\n * @version 1.0\n * @description Helps\n */", "main();\n/** @tool_type x */", "/* open", "'use strict'",
         "// @ts-check\n// version: 1.0\n// description: helps\n", "/** The tool_id: of a tool.\n * tool_id: text */", "/ / @tool_type x\n"],
    )  # fmt: skip
    def test_a_file_without_metadata_is_a_helper(self, text, load):
        assert load("ops/helper.js", text) == []

    @pytest.mark.parametrize(
        "text",
        [
            "/*" * 100_000,
            "\\`" * 100_000,
            "`" * 200_001,
            "/**\n" + " * @a\n" * 30_000 + "*/",
            "//\n" * 80_000,
            "//" * 120_000,
            "//\n\n \n" * 40_000,
            "/**/" * 60_000,
            "//\n/**/" * 30_000,
            " \n" * 120_000 + "//",
            "'\\" * 100_000,
        ],
    )
    def test_a_hostile_file_is_read_in_a_moment(self, text, load):
        assert load("ops/helper.js", text) == []


class TestBash:
    HEADER = "# version: 1.0.0\n# tool_type: script\n# executor_id: bash\n# category: ops\n"

    def test_values_go_on_while_they_are_indented(self, load):
        text = f"""#!/usr/bin/env bash
# Deploys things.
{self.HEADER}# description: "Deploy
#   the service"
# Usage: deploy.sh NAME
# requires:
#   - shell.execute
# - fs.read
# parameters:
#   - name: city
#     type: string
#
#   - name: days
#     type: integer
#
# timeout: 30
# Note: nothing of ours

echo hi
# tags: [no]
"""
        (tool,) = load(
            "ops/do-it.sh", text.replace("#   - shell.execute\n# - fs.read", "# - shell.execute\n# - fs.read")
        )
        assert tool.description == "Deploy the service"
        assert tool.requires == {"shell.execute", "fs.read"}
        assert list(tool.parameters["properties"]) == ["city", "days"]
        assert tool.limits.timeout_ms == 30_000
        assert tool.tags == ()

    @pytest.mark.spec("S3-62")
    @pytest.mark.parametrize(
        "text", ["", "echo hi\n", "#!/bin/sh\n# version: 1.0\n# description: helps\necho\n", "echo\n# tool_type: x\n"]
    )
    def test_a_file_without_metadata_is_a_helper(self, text, load):
        assert load("ops/helper.sh", text) == []

    def test_a_file_with_lines_of_another_system_is_read(self, load):
        text = f"#!/bin/bash\n{self.HEADER}# description: Do it\necho\n".replace("\n", "\r\n")
        (tool,) = load("ops/do-it.sh", text)
        assert tool.description == "Do it"
        assert tool.run.script.code == text.encode()

    @pytest.mark.spec("S3-01")
    def test_a_file_that_is_not_utf8_is_refused(self, problems):
        assert problems("ops/do-it.sh", b"# version: 1\n# \xff\n") == ["2:3: is not UTF-8; save the document as UTF-8"]
