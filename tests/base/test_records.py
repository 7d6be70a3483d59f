"""mccompile.base.records makes of a class what `dataclasses` makes, and its methods only when they are called."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from inspect import get_annotations, signature
from pathlib import Path
from typing import Any, ClassVar

import pytest

import mccompile
from mccompile.base import records
from mccompile.base.records import cached_property, dataclass


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    tags: tuple[str, ...] = field(default=(), compare=False)
    kind: ClassVar[str] = "point"


@dataclass(frozen=True)
class Named(Point):
    name: str = field(default="", kw_only=True)
    seen: list[int] = field(default_factory=list, repr=False, hash=False)
    area: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "area", self.x * self.y)


@dataclass
class Counter:
    count: int = 0
    log: list[str] = field(default_factory=list, init=False)


@dataclass(frozen=True, eq=False)
class Unlike:
    value: int


@dataclasses.dataclass(frozen=True)
class Users(Named):
    """What users derive, with the standard's decorator."""

    more: int = 3


def the_standards(cls: type, base: type = object, **options: bool) -> type:
    names = [found.name for found in fields(cls) if base is object or found.name in get_annotations(cls)]
    own = {name: copy.copy(cls.__dataclass_fields__[name]) for name in names}
    if "__post_init__" in cls.__dict__:
        own["__post_init__"] = cls.__dict__["__post_init__"]
    annotations = {name: found.type for name, found in own.items() if isinstance(found, dataclasses.Field)}
    made = type(cls.__name__, (base,), {**own, "__annotations__": annotations, "__qualname__": cls.__qualname__})
    return dataclasses.dataclass(**options)(made)


POINT = the_standards(Point, frozen=True)
CALLS: list[tuple[type, type, tuple[Any, ...], dict[str, Any]]] = [
    (Point, POINT, (1,), {}),
    (Point, POINT, (1, 3, ("a",)), {}),
    (Point, POINT, (), {}),
    (Point, POINT, (1, 2, (), 4), {}),
    (Named, the_standards(Named, POINT, frozen=True), (1,), {"name": "n"}),
    (Named, the_standards(Named, POINT, frozen=True), (1, 3, (), [4]), {}),
    (Named, the_standards(Named, POINT, frozen=True), (1, 3, (), [4], "n"), {}),
    (Named, the_standards(Named, POINT, frozen=True), (1,), {"area": 3}),
    (Counter, the_standards(Counter), (), {}),
    (Counter, the_standards(Counter), (2,), {}),
    (Counter, the_standards(Counter), (), {"log": []}),
    (Unlike, the_standards(Unlike, frozen=True, eq=False), (2,), {}),
]


def told(cls: type, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What an object of the class is like: its values, its text, whether it equals another, its hash."""
    try:
        one, other = cls(*given, **named), cls(*given, **named)
    except TypeError as error:
        return str(error)
    try:
        hashed: Any = hash(one) == hash(other)
        of = hash(one) if hashed else None
    except TypeError as error:
        hashed, of = str(error), None
    return vars(one), repr(one), one == other, one == 3, hashed, of, cls.__match_args__, replace(one) == one


@pytest.mark.parametrize(("cls", "standard", "given", "named"), CALLS)
def test_objects_are_those_of_the_standards_decorator(
    cls: type, standard: type, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    assert told(cls, given, named) == told(standard, given, named)


def test_frozen_ones_stay_as_they_are() -> None:
    for one, name in [(Point(1), "x"), (Point(1), "other"), (Named(1), "y"), (Users(1), "more")]:
        with pytest.raises(FrozenInstanceError):
            setattr(one, name, 1)
        with pytest.raises(FrozenInstanceError):
            delattr(one, name)
    counter = Counter()
    counter.count = 3
    assert counter == Counter(3)


def test_classes_of_users_derive_from_them() -> None:
    user = Users(1, 2, name="n")
    assert repr(user) == "Users(x=1, y=2, tags=(), name='n', area=2, more=3)"
    assert replace(user, x=4).area == 8 and user != replace(user, more=4)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Loose", (Named,), {"__annotations__": {}}))


@pytest.mark.parametrize(
    ("one", "changes"),
    [
        (Point(1, 3), {}),
        (Point(1, 3), {"y": 4}),
        (Named(1, name="n", seen=[1]), {"x": 4}),  # sets more than it is given
        (Users(1, 2), {"more": 4}),
        (Counter(3), {"count": 4}),
        (Unlike(3), {"value": 4}),
    ],
)
def test_with_other_values_they_are_what_the_standard_makes(one: Any, changes: dict[str, Any]) -> None:
    for _ in range(2):  # methods are made when they are first called
        made, standard = records.replace(one, **changes), replace(one, **changes)
        assert type(made) is type(standard) and vars(made) == vars(standard) and made is not one


@pytest.mark.parametrize("one", [Point(1), Counter(3), Unlike(3)])
def test_there_are_no_other_values_than_fields(one: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        records.replace(one, other=1)


def test_with_other_values_a_wrapped_method_is_called() -> None:
    @dataclass(frozen=True)
    class Wrapped:
        value: int

    before = records.replace(Wrapped(3), value=4)
    made, calls = Wrapped.__init__, []

    def counted(self: Wrapped, value: int) -> None:
        calls.append(value)
        made(self, value)

    Wrapped.__init__ = counted  # type: ignore[method-assign, assignment]
    assert records.replace(before, value=5).value == 5 and calls == [5]


def test_what_is_kept_is_no_value_and_stays_behind() -> None:
    @dataclass(frozen=True)
    class Square:
        side: int

        @cached_property
        def area(self) -> list[int]:
            """Of all sides."""
            return [self.side**2]

    one = Square(3)
    assert one.area is one.area and one.area == [9]
    assert records.replace(one, side=4).area == [16] and Square.area.__doc__ == "Of all sides."


def test_they_are_copied_and_pickled() -> None:
    named = Named(1, name="n", seen=[1])
    assert pickle.loads(pickle.dumps(named)) == copy.deepcopy(named) == named


def test_methods_are_made_when_they_are_called() -> None:
    @dataclass(frozen=True)
    class Late:
        value: int

    names = ("__init__", "__eq__", "__hash__")
    before = [Late.__dict__[name] for name in names]
    assert Late(3) == Late(3) and hash(Late(3)) == hash(Late(3))
    assert not {*before} & {Late.__dict__[name] for name in names}


def test_a_method_that_another_wraps_stays_wrapped() -> None:
    @dataclass
    class Wrapped:
        value: int

    made, calls = Wrapped.__init__, []

    def counted(self: Wrapped, value: int) -> None:
        calls.append(value)
        made(self, value)

    Wrapped.__init__ = counted
    assert [Wrapped(3), Wrapped(4)] == [Wrapped(3), Wrapped(4)] and calls == [3, 4, 3, 4]


def test_classes_that_users_make_show_their_parameters() -> None:
    assert {"options", "package"} <= set(signature(mccompile.Compiled).parameters)


def test_nearly_all_classes_have_them() -> None:
    """But where the standard's decorator makes slots or an order, and where users make objects."""
    folder = Path(mccompile.__file__).parent
    files = [*folder.rglob("*.py"), *(folder.parent / "kernels_templates").rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    ours = sum("records import dataclass\n" in text for text in texts)
    assert ours > 20 * sum("from dataclasses import dataclass" in text for text in texts)
