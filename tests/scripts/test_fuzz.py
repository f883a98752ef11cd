"""The judge `fuzz` fuzzes every parser for seconds; here each is tried on what it reads and on a few distorted inputs."""

import random

import pytest
from parsers import PARSERS

MARKS = b"{}[]()\"'\\:,$&*|<>#\0\n\xff\xed\xa0\x80"


def distort(data: bytes, source: random.Random) -> bytes:
    """The bytes with a few of them lost, repeated, or replaced by ones that mean something somewhere."""
    written = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at, length = source.randint(0, len(written)), source.randint(0, 8)
        other = source.choice([b"", written[at : at + length] * 2, bytes(source.choices(MARKS, k=length)), data])
        written[at : at + length] = other
    return bytes(written)


@pytest.mark.parametrize("name", PARSERS)
def test_a_distorted_input_is_read_or_refused(name):
    parser = PARSERS[name]
    inputs, source = parser.inputs(), random.Random(name)
    assert inputs
    for data in [*inputs[:20], *(distort(source.choice(inputs), source) for _ in range(60))]:
        parser.parse(data)
