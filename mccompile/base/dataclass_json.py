"""Dataclasses as JSON: fields that are not their defaults, by name.

Invariant: what `from_json` makes of what `to_json` gives is equal to it; what has another form is a ValueError.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from .dtypes import DTYPES, DType

T = TypeVar("T")


def to_json(value: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """`without`: fields that are left out."""
    fields = [field for field in dataclasses.fields(value) if field.name not in without]
    found = {field.name: getattr(value, field.name) for field in fields}
    return {field.name: _written(found[field.name]) for field in fields if found[field.name] != _default(field)}


def from_json(cls: type[T], found: Any) -> T:
    hints = get_type_hints(cls, localns=vars(sys.modules[cls.__module__]))  # also of fields that cls inherits
    if not isinstance(found, Mapping) or not hints.keys() >= found.keys():
        raise ValueError(f"{found!r} is not fields of {cls.__name__}")
    return cls(**{name: _read(hints[name], part) for name, part in found.items()})


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if callable(field.default_factory) else field.default


def _written(value: Any) -> Any:
    match value:
        case DType():
            return value.name
        case Path():
            return value.as_posix()
        case Mapping():
            return {str(key): _written(part) for key, part in value.items()}
        case frozenset():
            return sorted(map(_written, value))
        case tuple():
            return [_written(part) for part in value]
    return to_json(value) if dataclasses.is_dataclass(value) else value


def _read(hint: Any, found: Any) -> Any:
    """The value of that type that JSON stands for."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        for part in parts:
            try:
                return _read(part, found)
            except ValueError:
                continue
    elif hint is types.NoneType:
        if found is None:
            return None
    elif origin is not None and issubclass(origin, Mapping):
        if isinstance(found, Mapping):
            return {str(key): _read(parts[1], part) for key, part in found.items()}
    elif origin in (tuple, frozenset):
        if isinstance(found, list):
            each = [parts[0]] * len(found) if origin is frozenset or parts[-1] is Ellipsis else parts
            return origin(_read(part, value) for part, value in zip(each, found, strict=True))
    elif isinstance(hint, type) and issubclass(hint, Enum):
        return hint(found)
    elif hint is DType:
        if isinstance(found, str) and found in DTYPES:
            return DTYPES[found]
    elif hint is Path:
        if isinstance(found, str):
            return Path(found)
    elif dataclasses.is_dataclass(hint):
        return from_json(hint, found)  # type: ignore[arg-type]
    elif hint is float:
        if isinstance(found, int | float) and not isinstance(found, bool):
            return float(found)
    elif type(found) is hint:
        return found
    raise ValueError(f"{found!r} is not {hint}")
