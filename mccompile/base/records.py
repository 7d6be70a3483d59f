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
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, init: bool = True) -> Any:
        """What `dataclasses.dataclass` makes of a class."""
        return _made(cls, frozen, eq, init) if cls else lambda cls: _made(cls, frozen, eq, init)


_PARAMETERS = "__dataclass_params__"
_making = RLock()


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


def _make_later(cls: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    made: list[Callable[..., Any]] = []

    def method(self: Any, *args: Any, **named: Any) -> Any:
        if not made:
            made.append(make(cls))
            made[0].__qualname__, made[0].__module__ = method.__qualname__, cls.__module__
        if cls.__dict__.get(name) is method:  # not wrapped by another since
            setattr(cls, name, made[0])
        return made[0](self, *args, **named)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)


def _compiled(head: str, lines: list[str], names: dict[str, Any]) -> Any:
    exec("\n ".join([f"def {head}:", *lines]), names)
    return names[head.partition("(")[0]]


def _init(cls: Any) -> Any:
    frozen = getattr(cls, _PARAMETERS).frozen
    names: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    anywhere, by_name, lines = ["self"], list[str](), list[str]()
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
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _compiled(f"__init__({', '.join(anywhere + ['*'] * bool(by_name) + by_name)})", lines or ["pass"], names)


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
