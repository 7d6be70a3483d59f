"""Dataclasses whose methods are made when they are first called.

`dataclasses.dataclass` writes and compiles the source of up to six methods of a class while the class is made, which
took half of the start of a process: mccompile has hundreds of operators, kernels and passes, of which a process uses a
few. Here a class gets its fields at once, from the standard's decorator, and methods that write `__init__`, `__eq__`
and `__hash__` when they are first called, which then replace them. Type checkers see the standard's decorator.
Classes that users of Python make have it too, as `help` and `inspect` show their parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from reprlib import recursive_repr
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
    from functools import cached_property as cached_property
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, init: bool = True) -> Any:
        """What `dataclasses.dataclass` makes of a class."""
        return _made(cls, frozen, eq, init) if cls else lambda cls: _made(cls, frozen, eq, init)

    def replace(record: Any, /, **changes: Any) -> Any:
        """What `dataclasses.replace` gives, in a third of the time where nothing but fields is to be copied."""
        cls, own = type(record), record.__dict__
        init, names = _copied.get(cls, (None, ()))
        if init is not cls.__init__:
            _copied[cls] = init, names = cls.__init__, _names_to_copy(cls)
        if not names or not (changes.keys() <= names and names <= own.keys()):
            return dataclasses.replace(record, **changes)
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", {name: own[name] for name in names} | changes)
        return made

    class cached_property:
        """That of functools without its lock, which takes longer than most of what is kept (until Python 3.12)."""

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self.make, self.name, self.__doc__ = make, make.__name__, make.__doc__

        def __get__(self, record: Any, cls: type | None = None) -> Any:
            if record is None:
                return self
            found = record.__dict__[self.name] = self.make(record)
            return found


_PARAMETERS = "__dataclass_params__"
_making = RLock()
_copied: dict[type, tuple[Any, Any]] = {}  # by class: its `__init__`, and what `replace` copies


def _made(cls: Any, frozen: bool, eq: bool, init: bool) -> Any:
    own = cls.__dict__
    hashed = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    _give_fields(cls)
    parameters = own[_PARAMETERS]
    parameters.init, parameters.repr, parameters.eq, parameters.frozen = init, True, eq, frozen
    if init and "__init__" not in own:
        _make_later(cls, "__init__", _init)
    if "__repr__" not in own:
        cls.__repr__ = _repr
    if eq and "__eq__" not in own:
        _make_later(cls, "__eq__", _eq)
    if eq and not hashed:
        if frozen:
            _make_later(cls, "__hash__", _hash)
        else:
            cls.__hash__ = None
    if frozen:
        cls.__setattr__, cls.__delattr__ = _setattr, _delattr
    return cls


def _give_fields(cls: Any) -> None:
    """Has the standard's decorator find the fields. It would write two methods for a class derived of a frozen one."""
    documentation = cls.__doc__
    with _making:
        frozen = [base.__dict__[_PARAMETERS] for base in cls.__mro__[1:] if _PARAMETERS in base.__dict__]
        frozen = [parameters for parameters in frozen if parameters.frozen]
        try:
            for parameters in frozen:
                parameters.frozen = False
            cls.__doc__ = documentation or "-"  # else it is made of the signature
            dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        finally:
            cls.__doc__ = documentation
            for parameters in frozen:
                parameters.frozen = True


def _names_to_copy(cls: Any) -> Any:
    """The fields, if making an object with other ones does nothing but to set them."""
    does_more = hasattr(cls, "__post_init__") or cls.__new__ is not object.__new__
    if does_more or not getattr(cls.__dict__.get("__init__"), "sets_fields", False):
        return ()
    return {field.name: None for field in fields(cls)}.keys() if all(field.init for field in fields(cls)) else ()


def _make_later(cls: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    made: list[Callable[..., Any]] = []

    def method(self: Any, *args: Any, **named: Any) -> Any:
        if not made:
            made.append(make(cls))
            made[0].__qualname__, made[0].__module__ = method.__qualname__, cls.__module__
        if cls.__dict__.get(name) is method:  # not wrapped by another since
            setattr(cls, name, made[0])
        return made[0](self, *args, **named)

    method.__name__, method.__qualname__, method.sets_fields = name, f"{cls.__qualname__}.{name}", True  # type: ignore[attr-defined]
    setattr(cls, name, method)


def _compiled(head: str, lines: list[str], names: dict[str, Any]) -> Any:
    exec("\n ".join([f"def {head}:", *lines]), names)
    return names[head.partition("(")[0]]


def _init(cls: Any) -> Any:
    frozen = getattr(cls, _PARAMETERS).frozen
    names: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    anywhere, by_name, values = ["self"], list[str](), dict[str, str]()
    for field in fields(cls):
        name, value = field.name, field.name
        if field.default_factory is not MISSING:
            names[f"_new_{name}"] = field.default_factory
            value = f"_new_{name}() if {name} is _MISSING else {name}" if field.init else f"_new_{name}()"
            default = "=_MISSING"
        elif field.default is not MISSING:
            names[f"_default_{name}"] = field.default
            default = f"=_default_{name}"
        else:
            default = ""
        if field.init:
            (by_name if field.kw_only else anywhere).append(name + default)
        elif field.default_factory is MISSING:
            continue  # its default, if any, is the class's
        values[name] = value
    if frozen and not any(hasattr(getattr(cls, name, None), "__set__") for name in values):
        lines = [f"self.__dict__.update({', '.join(f'{name}={value}' for name, value in values.items())})"]
    elif frozen:
        lines = [f"_set(self, {name!r}, {value})" for name, value in values.items()]
    else:
        lines = [f"self.{name} = {value}" for name, value in values.items()]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    made = _compiled(f"__init__({', '.join(anywhere + ['*'] * bool(by_name) + by_name)})", lines or ["pass"], names)
    made.sets_fields = True
    return made


def _eq(cls: Any) -> Any:
    compared = [field.name for field in fields(cls) if field.compare]
    left, right = ("(" + "".join(f"{it}.{name}, " for name in compared) + ")" for it in ("self", "other"))
    lines = ["if other.__class__ is self.__class__:", f" return {left} == {right}", "return NotImplemented"]
    return _compiled("__eq__(self, other)", lines, {})


def _hash(cls: Any) -> Any:
    hashed = [field.name for field in fields(cls) if (field.compare if field.hash is None else field.hash)]
    return _compiled("__hash__(self)", ["return hash((" + "".join(f"self.{name}, " for name in hashed) + "))"], {})


@recursive_repr()
def _repr(self: Any) -> str:
    said = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({said})"


def _refuse(self: Any, name: str, verb: str) -> None:
    if _PARAMETERS in type(self).__dict__ or name in type(self).__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {verb} field {name!r}")


def _setattr(self: Any, name: str, value: Any) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)
