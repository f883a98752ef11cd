"""Two requests ask for the same thing independent of requester, urgency and notation."""

import pytest

from toolcrib.features.requests.document import read_request, same_text

WANTED = """tool_request:
  id: req_20240115_001
  name: word_counter
  description: Count words
  priority: low
  requested_by: fullsend
  inputs:
    - {name: text, type: string, description: d, required: true}
    - {name: deep, type: boolean, description: d}
  outputs:
    - name: words
      type: list
      schema: {word: string, count: integer}
  example_usage: |
    from tools.word_counter import count
    count(text="a")
"""


def digest_of(text):
    return read_request(text).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("req_20240115_001", "req_20240115_002"),
        ("priority: low", "priority: medium"),
        ("requested_by: fullsend", "requested_by: somebody"),
        ("priority: low", "priority: high\n  experiment_blocked: exp_1"),
        ("priority: low", "priority: high\n  experiment_id: exp_1"),
        ("  inputs:", "  # what it takes\n  inputs:"),
        (
            "{name: text, type: string, description: d, required: true}",
            "{required: true, description: d, type: str, name: text}",
        ),
        ("{word: string, count: integer}", "{count: integer, word: string}"),
        ("    - {name: deep, type: boolean, description: d}\n", ""),
        ('count(text="a")\n', 'count(text="a")'),
    ],
)
def test_what_does_not_change_the_request(old, new):
    assert old in WANTED
    changed = WANTED.replace(old, new)
    if "deep" in old:  # the same inputs in another order
        changed = changed.replace("  inputs:\n", "  inputs:\n" + old)
    assert digest_of(changed) == digest_of(WANTED)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: word_counter", "name: word_lister"),
        ("Count words", "Count all words"),
        ("type: boolean", "type: integer"),
        (", required: true", ""),
        ("count: integer", 'count: "integer | null"'),
        ('text="a"', 'text="b"'),
        ("  outputs:", "  requirements: [be quick]\n  outputs:"),
        ("  outputs:", "  capabilities: [net.http]\n  outputs:"),
        ("  outputs:", "  hosts: [example.com]\n  outputs:"),
        ("  outputs:", "  notes: x\n  outputs:"),
        ("  outputs:", "  answers: [{url: 'https://example.com/'}]\n  outputs:"),
        ("  outputs:", "  examples: [{input: {text: a}, output: {words: []}}]\n  outputs:"),
    ],
)
def test_what_makes_it_another_request(old, new):
    assert old in WANTED
    changed = WANTED.replace(old, new).replace(
        "word_counter import", f"{'word_lister' if 'lister' in new else 'word_counter'} import"
    )
    assert digest_of(changed) != digest_of(WANTED)


@pytest.mark.parametrize(
    ("one", "other", "same"), [("a", "a\n", True), ("a\r\n", "a\n\n", True), ("a", "a ", False), ("\na", "a", False)]
)
def test_line_breaks_at_the_end_do_not_count(one, other, same):
    assert same_text(one, other) is same
