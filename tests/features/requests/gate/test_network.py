"""Tools that need a network are proved with recorded answers, and one that should keep what it had is made to lose its network."""

import pytest

from tool_requests import allowance_of, recorded_answer
from toolcrib.features.requests.gate.judge import find_unprovable

PAGES = {
    "https://api.example.com/stars?repo=owner/name&page=1": '["ada", "bob"]',
    "https://api.example.com/stars?repo=owner/name&page=2": '["cid"]',
    "https://api.example.com/stars?repo=owner/name&page=3": "[]",
}
ANSWERS = [{"url": url, "body": body} for url, body in PAGES.items()]
WANTED = {
    "name": "star_lister",
    "description": "Lists who starred a repository",
    "inputs": [{"name": "repo", "type": "string", "description": "As owner/name", "required": True}],
    "outputs": [{"name": "users", "type": "list"}, {"name": "complete", "type": "boolean"}],
    "example_usage": 'from tools.star_lister import list_stars\n\nlist_stars(repo="owner/name")\n',
    "capabilities": ["net.http"],
    "hosts": ["api.example.com"],
    "answers": ANSWERS,
}
# Most of what the network does has nothing to do with the inputs; without any, few calls are made.
FIXED = {
    **WANTED,
    "inputs": [],
    "example_usage": "from tools.star_lister import list_stars\n\nlist_stars()\n",
}
HONEST = """
import json
import urllib.request

def list_stars(repo: str) -> dict:
    users, page = [], 0
    while True:
        page += 1
        try:
            with urllib.request.urlopen(f"https://api.example.com/stars?repo={repo}&page={page}") as answer:
                found = json.load(answer)
        except OSError as problem:
            return {"result": {"users": users, "complete": False}, "success": False, "error": str(problem)}
        if not found:
            return {"users": users, "complete": True}
        users += found
"""
CARELESS = HONEST.replace('{"result": {"users": users, "complete": False}', '{"result": None')
ELSEWHERE = HONEST.replace(
    "    users, page",
    '    try:\n        urllib.request.urlopen("https://evil.example/")\n    except OSError:\n        pass\n    users, page',
)


def without_inputs(code):
    """The code for a request like `FIXED`."""
    return code.replace("repo: str", "").replace("{repo}", "owner/name")


SCRAPER = """
import json
import urllib.request

FIELDS = ("email", "name", "company", "bio", "location", "twitter")

def scrape_stargazers(repo: str, limit: int = 100, include_email: bool = True) -> dict:
    users, page, why = [], 0, ""
    while not why and len(users) < limit:
        page += 1
        try:
            with urllib.request.urlopen(f"https://api.github.com/repos/{repo}/stargazers?page={page}") as answer:
                found = json.load(answer)
        except (OSError, ValueError) as problem:
            why = f"page {page}: {problem}"
            break
        if not found:
            break
        users += [_user(one, include_email) for one in found]
    value = {"users": users[: max(limit, 0)], "total_found": len(users), "rate_limited": bool(why)}
    return {"result": value, "success": not why, "error": why or None}

def _user(one, include_email):
    user = {name: one.get(name) for name in FIELDS}
    return {**user, "username": one["login"], "followers": one["followers"], "email": user["email"] if include_email else None}
"""


@pytest.mark.spec("S0-26", "S0-27", "S0-42")
def test_the_request_of_the_document_is_proved_with_what_the_operator_adds(prove, template):
    url = "https://api.github.com/repos/anthropics/claude/stargazers?page="
    pages = [
        '[{"login": "ada", "followers": 3, "email": "ada@example.com"}]',
        '[{"login": "bob", "followers": 0}]',
        "[]",
    ]
    allowance = allowance_of(
        "net.http",
        hosts=("api.github.com",),
        answers=tuple(recorded_answer(f"{url}{number}", body=body) for number, body in enumerate(pages, 1)),
    )
    judgement = prove(SCRAPER, template, allowance=allowance)
    assert judgement.complaints == ()
    assert "partial: request 2 of a call failed" in judgement.checks
    followers = prove(SCRAPER.replace('one["followers"]', 'str(one["followers"])'), template, allowance=allowance)
    assert {complaint.check for complaint in followers.complaints} == {"output"}
    assert "users[0].followers" in followers.complaints[0].text


def test_a_tool_is_proved_with_the_answers_of_its_request(prove, wanted):
    judgement = prove(HONEST, wanted(**WANTED))
    assert judgement.complaints == ()
    assert judgement.passed


def test_a_connection_past_the_recorded_answers_is_named(prove, wanted):
    judgement = prove(without_inputs(ELSEWHERE), wanted(**FIXED))
    texts = [complaint.text for complaint in judgement.complaints if complaint.check == "effects"]
    assert texts == [
        (
            "list_stars(): it connects to evil.example:443 (it was denied); "
            "remove it, or have that host among the hosts and recorded answers of the request"
        )
    ]


def test_one_that_knows_no_recorded_answer_to_an_ordinary_call_fails(prove, wanted):
    judgement = prove(HONEST.replace("page={page}", "part={page}"), wanted(**WANTED))
    assert [complaint.check for complaint in judgement.complaints] == ["accepts"]
    assert judgement.complaints[0].text.startswith("list_stars(repo='owner/name') (only what is required) fails: ")


def test_without_recorded_answers_it_is_not_provable_and_nothing_runs(prove, wanted):
    judgement = prove(HONEST, wanted(**{**WANTED, "answers": None}), trial=None)
    assert [str(complaint) for complaint in judgement.complaints] == [
        (
            "proof: not provable: the tool needs net.http, and the network is disabled while it is proved; "
            "add answers (url, status, body) to the request, or allow it to go unproved"
        )
    ]
    assert judgement.unprovable
    assert judgement.checks == ("nothing of it was run",)


def test_the_operator_may_add_answers_and_the_network_itself(prove, wanted):
    request, code = wanted(**{**FIXED, "answers": None, "capabilities": None, "hosts": None}), without_inputs(HONEST)
    answers = tuple(recorded_answer(url, body=body) for url, body in PAGES.items())
    allowance = allowance_of("net.http", hosts=("api.example.com",), answers=answers)
    assert not prove(code, request).passed
    assert prove(code, request, allowance=allowance).complaints == ()


def test_the_operator_may_let_it_go_unproved_and_the_rest_is_still_looked_at(prove, wanted):
    request, allowance = wanted(**{**FIXED, "answers": None}), allowance_of(unproved=True)
    honest = without_inputs(HONEST)
    assert prove(honest, request, allowance=allowance).passed
    writing = honest.replace("    users, page", "    open('/var/mark', 'w')\n    users, page")
    assert [complaint.check for complaint in prove(writing, request, allowance=allowance).complaints] == ["effects"]
    elsewhere = prove(without_inputs(ELSEWHERE), request, allowance=allowance)
    assert [complaint.check for complaint in elsewhere.complaints] == ["effects"]
    assert "evil.example" in elsewhere.complaints[0].text


@pytest.mark.parametrize("capability", ["net.http", "net.call", "secrets.github"])
def test_what_needs_a_network_or_secrets_needs_recorded_answers(capability, wanted):
    request = wanted(capabilities=[capability])
    unprovable = find_unprovable(request, allowance_of())
    assert capability in unprovable.text
    assert find_unprovable(request, allowance_of(unproved=True)) is None
    assert find_unprovable(request, allowance_of(answers=(recorded_answer("https://api.example.com/"),))) is None
    assert find_unprovable(wanted(capabilities=["fs.read"]), allowance_of()) is None


@pytest.mark.spec("S0-27")
def test_what_was_achieved_survives_a_network_that_fails(prove, wanted):
    judgement = prove(
        HONEST, wanted(**WANTED, requirements=["Return partial results on failure (don't lose progress)"])
    )
    assert judgement.complaints == ()
    assert "partial: request 2 of a call failed" in judgement.checks


TOKEN = {"url": "https://api.example.com/token", "body": '{"token": "s3cr3t"}'}
PARTIAL = {**FIXED, "requirements": ["Return partial results on failure"]}
# The first request asks for something else, as many a tool does.
KNOCKING = HONEST.replace(
    "    users, page = [], 0\n",
    """    users, page = [], 0
    try:
        urllib.request.urlopen("https://api.example.com/token").read()
    except OSError as problem:
        return {"result": {"users": [], "complete": False}, "success": False, "error": str(problem)}
""",
)
HEEDLESS = KNOCKING.replace(
    '        return {"result": {"users": [], "complete": False}, "success": False, "error": str(problem)}\n    while',
    "        pass\n    while",
)
ONE_PAGE = """
        if page == 1:
            return {"users": found, "complete": True}
        if not found:"""
BY_NUMBER = """
import json
import urllib.request

def list_stars(repo: str) -> dict:
    users = []
    try:
        with urllib.request.urlopen(f"https://api.example.com/stars?repo={repo}&page=1") as answer:
            names = json.load(answer)
        for name in names:
            with urllib.request.urlopen(f"https://api.example.com/users/{name}") as answer:
                users.append({"name": name, "city": json.load(answer)["city"]})
    except OSError as problem:
        return {"result": {"users": users, "complete": False}, "success": False, "error": str(problem)}
    return {"users": users, "complete": True}
"""
CITIES = [
    {"url": f"https://api.example.com/users/{name}", "body": f'{{"city": "{city}"}}'}
    for name, city in (("ada", "London"), ("bob", "Berlin"))
]


@pytest.mark.spec("S0-27")
@pytest.mark.parametrize(
    "left",
    [
        '{"result": {"users": [], "complete": False}, "success": False, "error": "gone"}',
        '{"result": {}, "success": False, "error": "gone"}',
        '{"result": {"users": ["nobody"], "complete": False}, "success": False, "error": "gone"}',
        '{"users": [], "complete": False}',
    ],
)
def test_one_that_keeps_an_empty_shell_loses_what_it_had(left, prove, wanted):
    code = HONEST.replace(
        '{"result": {"users": users, "complete": False}, "success": False, "error": str(problem)}', left
    )
    [complaint] = prove(without_inputs(code), wanted(**PARTIAL)).complaints
    assert complaint.check == "partial"
    assert complaint.text.startswith("list_stars() loses what it had when the network fails")
    assert ": it answers {" in complaint.text
    assert ("and answers that hold more had come before; catch the failure" in complaint.text) is ('"users"' in left)


def test_one_that_is_empty_handed_is_tried_further_on(prove, wanted):
    """When its second request fails, it has achieved nothing yet."""
    request = wanted(**{**PARTIAL, "answers": [TOKEN, *ANSWERS]})
    knocking = without_inputs(KNOCKING)
    judgement = prove(knocking, request)
    assert judgement.complaints == ()
    assert "partial: request 3 of a call failed" in judgement.checks
    losing = knocking.replace('"users": users, "complete": False', '"users": [], "complete": False')
    assert [complaint.check for complaint in prove(losing, request).complaints] == ["partial"]


@pytest.mark.parametrize("code", [KNOCKING, HEEDLESS])
def test_one_whose_only_answer_with_something_in_it_is_the_last_has_nothing_to_lose(code, prove, wanted):
    code = without_inputs(code).replace("\n        if not found:", ONE_PAGE)
    judgement = prove(code, wanted(**{**PARTIAL, "answers": [TOKEN, *ANSWERS[:1]]}))
    assert judgement.complaints == ()
    assert "partial: request 2 of a call failed" in judgement.checks


def test_one_that_puts_its_items_together_from_several_answers_may_have_none_yet(prove, wanted):
    request = wanted(**{**PARTIAL, "answers": [ANSWERS[0], *CITIES]})
    assert prove(without_inputs(BY_NUMBER), request).complaints == ()


def test_one_that_had_nothing_when_its_first_request_failed_may_say_so(prove, wanted):
    code = without_inputs(HONEST).replace("\n        if not found:", ONE_PAGE)
    judgement = prove(code, wanted(**{**PARTIAL, "answers": ANSWERS[:1]}))
    assert judgement.complaints == ()
    assert "partial: request 1 of a call failed" in judgement.checks


READING = """
import re
import urllib.request

def read_page() -> dict:
    name, about = None, None
    try:
        with urllib.request.urlopen("https://api.example.com/name") as answer:
            name = re.search("<h1>(.*)</h1>", answer.read().decode())[1]
        with urllib.request.urlopen("https://api.example.com/about") as answer:
            about = answer.read().decode()
    except OSError as problem:
        return {"result": {"name": name, "about": about}, "success": False, "error": str(problem)}
    return {"name": name, "about": about}
"""


def test_single_values_and_pages_of_text_count_too(prove, wanted):
    request = wanted(
        **{
            **PARTIAL,
            "name": "page_reader",
            "outputs": [{"name": "name", "type": "string"}, {"name": "about", "type": "string"}],
            "example_usage": "from tools.page_reader import read_page\n\nread_page()\n",
            "answers": [
                {"url": "https://api.example.com/name", "body": "<h1>Ada</h1>"},
                {"url": "https://api.example.com/about", "body": "All about it"},
            ],
        },
        examples=[{"input": {}, "output": {"name": "Ada", "about": "All about it"}}],
    )
    assert prove(READING, request).complaints == ()
    losing = prove(READING.replace('"result": {"name": name,', '"result": {"name": "",'), request)
    assert [complaint.check for complaint in losing.complaints] == ["partial"]


def test_one_that_raises_when_the_network_fails_is_told_what_and_where(prove, wanted):
    code = HONEST.replace("            return {", "            raise KeyError('gone')\n            return {", 1)
    [complaint] = prove(without_inputs(code), wanted(**PARTIAL)).complaints
    assert "when the network fails (KeyError: 'gone' (at star_lister.py:13)); catch" in complaint.text


def test_one_that_loses_what_it_had_is_told_so(prove, wanted):
    judgement = prove(CARELESS, wanted(**WANTED, requirements=["Return partial results on failure"]))
    assert [complaint.check for complaint in judgement.complaints] == ["partial"]
    text = judgement.complaints[0].text
    assert text.startswith("list_stars(repo='owner/name') loses what it had when the network fails (PERMANENT: ")
    assert text.endswith('catch the failure and return {"result": what there is, "success": False, "error": why}')
    unasked = wanted(**{**PARTIAL, "requirements": None})
    assert prove(without_inputs(CARELESS), unasked).passed, "nobody asked for partial results"


def test_of_one_request_the_first_fails(prove, wanted):
    single = """
import json
import urllib.request

def list_stars() -> dict:
    with urllib.request.urlopen("https://api.example.com/stars?repo=owner/name&page=1") as answer:
        return {"users": json.load(answer), "complete": False}
"""
    judgement = prove(single, wanted(**PARTIAL))
    assert [complaint.check for complaint in judgement.complaints] == ["partial"]
    assert "partial: request 1 of a call failed" in judgement.checks


def test_a_tool_that_makes_no_requests_has_none_that_could_fail(prove, wanted, honest):
    judgement = prove(honest, wanted(requirements=["Return partial results on failure"]))
    assert judgement.passed
    assert "partial: not tried, no call of it uses a recorded network" in judgement.checks
