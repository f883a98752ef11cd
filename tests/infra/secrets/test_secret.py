"""A secret is shown only on request."""

import copy
import dataclasses
import json
import logging
import pickle
import traceback

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.infra.secrets.secret import MASK, Secret

VALUE = "sesame-9f1c"


def test_only_asking_for_it_gives_the_text():
    assert Secret("KEY", VALUE).reveal() == VALUE


@pytest.mark.parametrize(
    "show",
    [
        str,
        repr,
        format,
        lambda secret: f"{secret} {secret!r} {secret!s} {secret:>40} {[secret]} { ({'k': secret}) }",
        lambda secret: "{} {!r}".format(secret, secret),  # noqa: UP032 - this is one of the ways
        lambda secret: json.dumps({"a": secret}, default=str),
        lambda secret: orjson.dumps({"a": secret}, default=str).decode(),
        lambda secret: str(ValueError(secret)),
        lambda secret: logging.LogRecord("x", 20, "", 1, "%s %r", (secret, secret), None).getMessage(),
    ],
)
def test_it_is_masked_in_every_form_that_shows_it(show):
    shown = show(Secret("KEY", VALUE))
    assert MASK in shown
    assert VALUE not in shown


def test_a_traceback_with_all_its_variables_does_not_show_it():
    secret = Secret("KEY", VALUE)
    try:
        assert secret.name == "OTHER", secret
    except AssertionError as problem:
        trace = traceback.TracebackException.from_exception(problem, capture_locals=True)
    assert VALUE not in "".join(trace.format()).replace(f'"{VALUE}"', "")
    assert "Secret('KEY', ***)" in "".join(trace.format())


@pytest.mark.parametrize("write", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_cannot_be_pickled_or_copied(write):
    with pytest.raises(TypeError, match="a secret cannot be pickled or copied; hand on its name"):
        write(Secret("KEY", VALUE))


@pytest.mark.parametrize(
    "write", [json.dumps, orjson.dumps, lambda secret: orjson.dumps([secret]), vars, dict, list, len]
)
def test_nothing_takes_it_apart(write):
    with pytest.raises(TypeError) as refused:
        write(Secret("KEY", VALUE))
    assert VALUE not in str(refused.value)
    assert not dataclasses.is_dataclass(Secret)


@given(st.text(), st.text())
def test_two_are_equal_if_their_texts_are(one, other):
    assert (Secret("A", one) == Secret("B", other)) == (one == other)
    assert Secret("A", one) != one


def test_it_cannot_be_the_key_of_a_dictionary():
    with pytest.raises(TypeError, match="unhashable"):
        {Secret("KEY", VALUE): 1}
