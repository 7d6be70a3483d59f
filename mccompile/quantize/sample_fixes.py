"""What mends samples that do not fit a model: commands that store them anew, which can be pasted.

Invariant: a command loses no values: what was stored under a name that means nothing is found by its shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from math import prod
from pathlib import Path

import numpy as np

from ..graph.ir import Graph, Value

LABELS = ("labels", "y")
_MOVING = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
Wanted = Sequence[int | None]  # a shape; None: any size


def python(statements: str) -> str:
    return f'python -c "import numpy; {statements}"'


def rewritten(path: Path, statements: str) -> str:
    """An .npz file with its arrays changed: `a` has them by name."""
    return python(f"a = dict(numpy.load('{path}')); {statements}; numpy.savez('{path}', **a)")


def changed(path: Path, name: str, change: str) -> str:
    """The array of an input stored anew: what it is then, or what is done to it (`.reshape(...)`, `numpy.rint({})`)."""
    if path.suffix == ".npy":
        made = _done(f"numpy.load('{path}')", change)
        return python(f"numpy.save('{path}', {made})")
    if change.startswith(".") or "{}" in change:
        with np.load(path) as stored:
            name = name if name in stored.files else stored.files[0]
        change = _done(f"a['{name}']", change)
    return rewritten(path, f"a['{name}'] = {change}")


def _done(array: str, change: str) -> str:
    return change.replace("{}", array) if "{}" in change else f"{array}{change}"


def stored(names: Iterable[str]) -> str:
    given = ", ".join(f"{name}=..." for name in sorted(names))
    said = f"numpy.savez('samples.npz', {given}) stores them, one after another along the first axis"
    return f"{said}; then give samples.npz instead"


def renamed(path: Path, graph: Graph, arrays: Mapping[str, np.ndarray]) -> str:
    """Arrays under the names of inputs, where only one can be meant, and whole numbers beside them as labels."""
    missing = [value for value in graph.inputs if value.name not in arrays]
    left = {name: array for name, array in arrays.items() if name not in {value.name for value in graph.inputs}}
    pops = []
    for value in missing:
        shape = wanted(value)
        alike = [name for name, array in left.items() if can_be_runs(array.shape, shape)]
        if len(missing) == len(left) == 1:
            alike = list(left)  # what its shape should be is said next
            if not _may_be(next(iter(left.values())).shape, shape):
                each = ", ".join("any" if size is None else str(size) for size in shape)
                return f"they are samples of another model: give some of {value.name}, each [{each}]"
        if len(alike) != 1:
            names = ", ".join(f"{each.name}=..." for each in graph.inputs)
            return f"name arrays like the inputs, as with numpy.savez({path.name!r}, {names})"
        pops.append(f"a['{value.name}'] = a.pop('{alike[0]}')")
        samples = left.pop(alike[0])
        classes = [n for n, a in left.items() if a.ndim == 1 and a.dtype.kind in "iu" and len(a) == len(samples)]
        if len(classes) == 1 and not arrays.keys() & set(LABELS):
            pops.append(f"a['labels'] = a.pop('{classes[0]}')")
            left.pop(classes[0])
    return rewritten(path, "; ".join(pops))


def _may_be(got: Sequence[int], shape: Wanted) -> bool:
    """Are axes of that many elements there, in any order, or as many elements in all?"""
    known = Counter(size for size in shape if size not in (None, 1))
    whole = prod(size or 0 for size in shape)
    return None in shape or known <= Counter(got) or whole in (prod(got), prod(got[1:]))


def wanted(value: Value) -> list[int | None]:
    return [dim if isinstance(dim, int) else None for dim in value.type.shape]


def fits(got: Sequence[int], shape: Wanted) -> bool:
    return len(got) == len(shape) and all(size in (None, number) for number, size in zip(got, shape, strict=True))


def can_be_runs(got: Sequence[int], shape: Wanted) -> bool:
    """Does the first axis count what the model takes, or samples of its batches?"""
    return fits(got[1:], shape) or (bool(shape) and fits(got[1:], shape[1:]))


def turned(path: Path, value: Value, got: Sequence[int]) -> str:
    """How an array with its channels elsewhere is turned, a flat one gets axes, or what is wanted."""
    shape = wanted(value)
    for axes in permutations(range(1, len(got))) if 2 < len(got) == len(shape) else ():
        if fits([got[axis] for axis in axes], shape[1:]):
            return changed(path, value.name, f".transpose({', '.join(map(str, (0, *axes)))})")
    sizes = [size for size in shape[1:] if size is not None]
    if len(sizes) == len(shape) - 1 and prod(sizes) == prod(got[1:]):
        return changed(path, value.name, f".reshape(-1, {', '.join(map(str, sizes))})")
    return f"store {value.name} as [N, {', '.join('any' if size is None else str(size) for size in shape[1:])}]"


def converted(path: Path, value: Value, array: np.ndarray) -> str:
    """Floats as integers: as the model counts where it says so, as they are where they are whole."""
    kind = np.dtype(value.type.dtype.numpy)
    if array.dtype.kind == "f" and kind.kind in "iu" and not (array == np.rint(array)).all():
        scheme = _scheme(value)
        if scheme is None:
            return f"store whole numbers, as the program is to be given them: {value.name} as {kind.name}"
        low, high = value.type.dtype.low, value.type.dtype.high
        counts = f"numpy.clip(numpy.rint({{}} / {scheme[0]:.9g}) + {scheme[1]}, {low}, {high}).astype('{kind.name}')"
        return changed(path, value.name, counts)
    if not _converts(array, kind):
        return f"store the numbers that the model is to be given: {value.name} as {kind.name}"
    return changed(path, value.name, f".astype('{kind.name}')")


def _converts(array: np.ndarray, kind: np.dtype) -> bool:
    if array.dtype.kind == "c":  # the imaginary part would be lost
        return False
    try:
        array.astype(kind)
    except (ValueError, TypeError):
        return False
    return True


def _scheme(value: Value) -> tuple[float, int] | None:
    """Scale and zero point of an input that is dequantized first, its elements moved or not."""
    for node, number in value.uses:
        name = type(node.op).__name__
        if name in _MOVING and number == 0 and (found := _scheme(node.output)):
            return found
        constants = [each.constant for each in node.inputs[1:] if each is not None]
        arrays = [each.array for each in constants if each is not None and each.array.size == 1]
        if name == "DequantizeLinear" and number == 0 and len(arrays) == len(constants):
            return float(arrays[0].item()), int(arrays[1].item()) if len(arrays) > 1 else 0
    return None


def counted(path: Path, names: Iterable[str], most: int) -> str:
    """Arrays cut to as many samples as all have."""
    return rewritten(path, "; ".join(f"a['{name}'] = a['{name}'][:{most}]" for name in sorted(names)))


def without_labels(path: Path) -> str:
    return f"leave them out: {rewritten(path, f'[a.pop(name, None) for name in {LABELS}]')}"
