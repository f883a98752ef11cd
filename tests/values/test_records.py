"""A record behaves as the frozen dataclass that the standard library makes of the same class."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from toolcrib.values.records import INSTANCES_BEFORE_COMPILING, record


def define(decorate: Any) -> Any:
    """A new class, made by this decorator."""

    @decorate
    class Place:
        """A place."""

        name: str
        tags: list[str] = field(default_factory=list)
        note: str = field(default="", compare=False)
        key: str = field(default="k", repr=False)

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("a place has a name")

    return Place


def define_both(*, kw_only: bool = True) -> list[Any]:
    """The same class as a record and as a dataclass of the standard library."""
    return [define(record(kw_only=kw_only)), define(dataclass(frozen=True, kw_only=kw_only, slots=True))]


@record
class Stored:
    """A record that `pickle` can find."""

    name: str
    numbers: tuple[int, ...] = ()


def tell(make: Any, *positional: object, **named: object) -> str:
    try:
        return repr(make(*positional, **named))
    except (TypeError, ValueError) as problem:
        return f"{type(problem).__name__}: {problem}"


@pytest.mark.parametrize("instances", [0, INSTANCES_BEFORE_COMPILING])
@pytest.mark.parametrize("kw_only", [True, False])
@pytest.mark.parametrize(
    ("positional", "named"),
    [
        ((), {"name": "a"}),
        ((), {"name": "a", "tags": ["b"], "note": "c", "key": "d"}),
        (("a",), {}),
        (("a", ["b"]), {"key": "d"}),
        (("a",), {"name": "a"}),
        ((), {}),
        ((), {"name": ""}),
        ((), {"name": "a", "other": 1}),
        (("a", [], "", "", "too many"), {}),
    ],
)
def test_a_record_takes_and_refuses_what_a_dataclass_does(instances, kw_only, positional, named):
    ours, theirs = define_both(kw_only=kw_only)
    for _ in range(instances):
        ours(name="a")
    # A compiled constructor calls itself by the short name of its class.
    expected = tell(theirs, *positional, **named).replace("define.<locals>.Place.__init__", "Place.__init__")
    assert tell(ours, *positional, **named) == expected


@pytest.mark.parametrize("instances", [0, INSTANCES_BEFORE_COMPILING])
def test_each_instance_has_its_own_default(instances):
    ours, _ = define_both()
    made = [ours(name="a") for _ in range(instances + 2)]
    made[-1].tags.append("b")
    assert [each.tags for each in made[:-1]] == [[]] * (instances + 1)


def test_records_are_compared_hashed_and_shown_by_their_fields():
    ours, theirs = define_both()
    assert ours(name="a", note="x") == ours(name="a", note="y")
    assert ours(name="a") != ours(name="b")
    assert ours(name="a") != theirs(name="a")
    assert repr(ours(name="a", key="secret")) == repr(theirs(name="a", key="secret"))
    assert len({Stored(name="a"), Stored(name="a"), Stored(name="b")}) == 2


@pytest.mark.parametrize("change", [lambda one: setattr(one, "name", "b"), lambda one: delattr(one, "name")])
def test_a_record_cannot_be_changed(change):
    one = Stored(name="a")
    with pytest.raises(FrozenInstanceError, match="'name'"):
        change(one)
    with pytest.raises((AttributeError, TypeError)):
        one.other = 1
    assert one == Stored(name="a")


def test_what_takes_dataclasses_takes_records():
    one = Stored(name="a", numbers=(1, 2))
    assert replace(one, name="b") == Stored(name="b", numbers=(1, 2))
    assert asdict(one) == {"name": "a", "numbers": (1, 2)}
    assert [each.name for each in fields(one)] == ["name", "numbers"]
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert other is not one


def test_what_a_class_defines_itself_stays():
    @record
    class Secret:
        """A value that is not shown."""

        value: str

        def __repr__(self) -> str:
            return "***"

    assert repr(Secret(value="a")) == "***"
