"""Results are bounded: a value that is too large is stored, and read piece by piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Call, Crib, Kind, ToolError, tool
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.expiring import KeptResults


@tool
def letters(n: int) -> str:
    """Give many letters."""
    return "ä" * n


@tool
def numbers(n: int) -> list[int]:
    """Give many numbers."""
    return list(range(n))


@tool
def fails(n: int) -> str:
    """Fail with a large partial value."""
    raise ToolError(Kind.PERMANENT, "no", value="x" * n)


async def test_a_value_at_the_limit_is_handed_over_and_one_above_it_is_kept_aside(crib_of):
    crib = crib_of(letters, calls={"result_bytes": 1002})
    assert (await crib.call("letters", n=500)).value == "ä" * 500
    result = await crib.call("letters", n=501)
    assert result.ok
    assert result.meta["kept"]["bytes"] == 1002
    assert result.meta["kept"]["letters"] == 501


async def test_the_caller_gets_the_head_the_full_size_and_a_handle_to_the_rest(crib_of):
    crib = crib_of(numbers, calls={"result_bytes": 1000})
    result = await crib.call("numbers", n=10_000)
    kept = result.meta["kept"]
    whole = "[" + ",".join(map(str, range(10_000))) + "]"
    assert result.value == whole[: kept["shown"]]
    assert kept["bytes"] == len(whole)
    text, offset = "", 0
    while offset is not None:
        piece = crib.read_result(kept["handle"], offset=offset, length=7_000)
        text += piece.text
        assert piece.total == len(whole)
        offset = piece.next
    assert text == whole


async def test_the_output_schema_is_checked_on_the_full_value(crib_of):
    @tool
    def lies() -> list[int]:
        """Promise numbers."""
        return [*range(10_000), "x"]

    result = await crib_of(lies, calls={"result_bytes": 100}).call("lies")
    assert result.error.kind is Kind.OUTPUT_INVALID
    assert "kept" not in result.meta


async def test_a_large_partial_value_is_kept_aside_too(crib_of):
    result = await crib_of(fails, calls={"result_bytes": 100}).call("fails", n=5_000)
    assert result.error.kind is Kind.PERMANENT
    assert result.meta["kept"]["bytes"] == 5_000


async def test_other_users_cannot_read_what_was_kept(crib_of):
    crib = crib_of(numbers, calls={"result_bytes": 100})
    result = await crib.call(Call(name="numbers", arguments={"n": 100}, caller="ann"))
    handle = result.meta["kept"]["handle"]
    assert crib.read_result(handle, caller="ann").text.startswith("[0,1")
    with pytest.raises(ToolError, match="no result is kept"):
        crib.read_result(handle, caller="bob")


@pytest.mark.parametrize("handle", ["", "x", "../../key", "0" * 40, "a" * 41, "../" + "a" * 37, "\x00" * 40, "A" * 40])
async def test_a_handle_that_is_none_finds_nothing(crib_of, project, handle):
    with pytest.raises(ToolError) as caught:
        crib_of(numbers, project=project).read_result(handle)
    assert caught.value.kind is Kind.NOT_FOUND


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (0, 0), (0, -1)])
async def test_a_piece_that_cannot_be_is_refused(crib_of, offset, length):
    crib = crib_of(numbers, calls={"result_bytes": 100})
    handle = (await crib.call("numbers", n=100)).meta["kept"]["handle"]
    with pytest.raises(ToolError) as caught:
        crib.read_result(handle, offset=offset, length=length)
    assert caught.value.kind is Kind.VALIDATION
    assert crib.read_result(handle, offset=10**9).text == ""


def test_what_was_kept_is_gone_after_an_hour():
    now = [1_000_000.0]
    store = MemoryStore()
    kept = KeptResults(lambda: store, clock=lambda: now[0])
    handle = kept.keep("text", "ann")
    now[0] += 3_599
    assert kept.read(handle, "ann").text == "text"
    now[0] += 2
    with pytest.raises(ToolError):
        kept.read(handle, "ann")
    other = kept.keep("more", "ann")
    assert [key.endswith(other) for key in store.keys("results/")] == [True]


def test_what_was_kept_survives_the_process_and_is_for_its_owners_eyes_only(project):
    with Crib(project, tools=[numbers], calls={"result_bytes": 100}) as crib:
        handle = crib.call_sync("numbers", n=100).meta["kept"]["handle"]
    with Crib(project) as later:
        assert later.read_result(handle).total == 291
    files = list((project / ".toolcrib" / "results").iterdir())
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600]
    assert (project / ".toolcrib").stat().st_mode & 0o777 == 0o700


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300), st.integers(1, 50))
def test_the_pieces_make_the_whole(text, length):
    store = MemoryStore()
    kept = KeptResults(lambda: store)
    handle = kept.keep(text, "ann")
    pieces, offset = [], 0
    while offset is not None:
        piece = kept.read(handle, "ann", offset=offset, length=length)
        pieces.append(piece.text)
        offset = piece.next
    assert "".join(pieces) == text
