"""Sequences and optional values, as Python has them, into the arrays that a compiled model takes, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mccompile.base.errors import Problem, WrongUse
from mccompile.base.structures import Items, Maybe, Slots, Structure, leaves


def packed(
    form: str | Structure[str], value: Any, zeros: Callable[[str], np.ndarray], name: str
) -> dict[str, np.ndarray]:
    """The arrays for one input; a list for a sequence, None for an optional value that is not there, in whose place
    tensors are what `zeros` gives."""
    match form:
        case Items():
            elements = _elements(value, name)
            if len(elements) != len(form.parts):
                raise _misfit(name, f"{len(elements)} elements", f"it was compiled for {len(form.parts)}")
            return dict(zip(form.parts, elements, strict=True))
        case Slots():
            return _slots(form, _elements(value, name), name)
        case Maybe():
            arrays = {form.present: np.array(value is not None)}
            if value is None:
                return arrays | {leaf: zeros(leaf) for leaf in leaves(form.value)}
            return arrays | packed(form.value, value, zeros, name)
    return {form: _whole(value, name)}


def _elements(value: Any, name: str) -> list[np.ndarray]:
    if isinstance(value, np.ndarray) or not isinstance(value, Iterable):
        raise _misfit(name, f"a {type(value).__name__}", "it is a sequence: give a list of arrays")
    return [_whole(element, name) for element in value]


def _whole(value: Any, name: str) -> np.ndarray:
    refuse_masked(value, name)
    return np.asarray(value)


def refuse_masked(value: Any, name: str, where: str = "") -> None:
    """An array of numpy may say that some of its elements are none; those would be taken as what lies there."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        why, fix = "some of its elements are masked, and the model takes all", f"say what they are: {name}.filled(0)"
        raise WrongUse(Problem(f"input {name!r} does not fit", where, why, fix))


def _slots(form: Slots[str], elements: list[np.ndarray], name: str) -> dict[str, np.ndarray]:
    room = form.room
    if len(elements) > room.count:
        raise _misfit(name, f"{len(elements)} elements", f"there is room for {room.count}")
    data = np.zeros((room.count, room.size), form.dtype.numpy)
    shapes = np.full((room.count, len(room.shape)), -1, np.int64)
    for number, element in enumerate(elements):
        shape = element.shape
        fits = len(shape) <= len(room.shape) if room.mixed else len(shape) == len(room.shape)
        fits &= all(a <= b if room.ragged else a == b for a, b in zip(shape, room.shape, strict=False))
        if not fits or element.dtype != form.dtype.numpy:
            shown = f"{element.dtype}[{','.join(map(str, shape))}]"
            raise _misfit(name, f"element {number} is {shown}", f"there is room for {form.dtype}{list(room.shape)}")
        data[number, : element.size] = element.reshape(-1)
        shapes[number, : len(shape)] = shape
    arrays = {form.data: data, form.length: np.array(len(elements), np.int64)}
    return arrays if form.shapes is None else {**arrays, form.shapes: shapes}


def unpacked(form: str | Structure[str], arrays: Mapping[str, np.ndarray]) -> Any:
    """One output: an array, a list of arrays, or None."""
    match form:
        case Items():
            return [arrays[part] for part in form.parts]
        case Slots():
            shapes = [form.room.shape] * form.room.count if form.shapes is None else arrays[form.shapes].tolist()
            found = []
            for row, shape in zip(arrays[form.data][: int(arrays[form.length])], shapes, strict=False):
                sizes = [size for size in shape if size >= 0]
                found.append(row[: int(np.prod(sizes, dtype=np.int64))].reshape(sizes))
            return found
        case Maybe():
            return unpacked(form.value, arrays) if bool(arrays[form.present]) else None
    return arrays[form]


def as_lists(entries: Iterable[tuple[str, str | Structure[str]]], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays by the names of tensors to values by the names that the model has."""
    parts = {leaf for _, form in entries for leaf in leaves(form)}
    others = {name: array for name, array in arrays.items() if name not in parts}
    there = [(name, form) for name, form in entries if all(leaf in arrays for leaf in leaves(form))]
    return others | {name: unpacked(form, arrays) for name, form in there}


def _misfit(name: str, why: str, fix: str) -> WrongUse:
    return WrongUse(Problem(f"input {name!r} does not fit", "", why, fix))
