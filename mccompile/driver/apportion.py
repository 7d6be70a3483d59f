"""Options of a call that names several models, or at the top of a project file. What they say of a tensor or dimension
is for the models that have it: `a.onnx b.onnx --dim batch=1 --state h=h_in` is right where only one of them has a
batch, or a state. The table of options says which options name tensors.

Invariant: what no model has goes to all of them, which refuse it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ..frontend.known_names import known_names
from ..frontend.load import read_proto
from ..option_table import options as entries
from .options import PLAIN, Options

_PARTS = {option.name: option.entry.part for option in entries() if option.entry.part is not None}


def apportion(models: Sequence[Path], options: Options) -> list[Options]:
    """The options of each model."""
    return apportioned([(model, options, _PARTS.keys()) for model in models])


def apportioned(jobs: Sequence[tuple[Path, Options, Collection[str]]]) -> list[Options]:
    """The same where models have options of their own; beside them stand the fields of those that are for all."""
    asked = [
        [name for name in _PARTS if name in shared and getattr(options, name) != getattr(PLAIN, name)]
        for _, options, shared in jobs
    ]
    if len(jobs) == 1 or not any(asked):
        return [options for _, options, _ in jobs]
    every = [_names(model, options) for model, options, _ in jobs]

    def own(options: Options, fields: Sequence[str], names: set[str]) -> Options:
        def has(*said: str) -> bool:
            return names.issuperset(said) or not any(other.issuperset(said) for other in every)

        return replace(options, **{name: _PARTS[name](getattr(options, name), has) for name in fields})

    return [own(options, fields, names) for (_, options, _), fields, names in zip(jobs, asked, every, strict=True)]


def _names(model: Path, options: Options) -> set[str]:
    """What is called by a name in a model; dimensions, too, that --shape gives one."""
    names = known_names(read_proto(model, replace(options.reading, dims={}, shapes={})))
    shapes = (shape for name, shape in options.shapes.items() if name in names)
    return names | {size for shape in shapes for size in shape if isinstance(size, str)}
