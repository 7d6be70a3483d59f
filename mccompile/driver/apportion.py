"""Options of a call that names several models. What they say of a tensor or dimension is for the models that have it:
`a.onnx b.onnx --dim batch=1 --state h=h_in` is right where only one of them has a batch, or a state.

Invariant: what no model has goes to all of them, which refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..frontend.known_names import known_names
from ..frontend.load import read_proto
from ..passes.api import ALL
from .options import Options

_NAMED = ("dims", "shapes", "bounds", "inputs", "outputs", "state", "stream", "observe", "external")


def apportion(models: Sequence[Path], options: Options) -> list[Options]:
    """The options of each model."""
    if len(models) == 1 or not any(getattr(options, field) for field in _NAMED):
        return [options] * len(models)
    reading = replace(options.reading, dims={}, shapes={})
    known = [known_names(read_proto(model, reading)) for model in models]
    every = [{*names, *_of_shapes(options, names)} for names in known]

    def own(names: set[str]) -> Options:
        def has(*asked: str) -> bool:
            return names.issuperset(asked) or not any(other.issuperset(asked) for other in every)

        def kept(named: Mapping[str, Any], also: Callable[[Any], Iterable[str]] = lambda _: ()) -> dict[str, Any]:
            return {name: value for name, value in named.items() if has(name, *also(value))}

        return replace(
            options,
            dims=kept(options.dims),
            shapes=kept(options.shapes),
            bounds=kept(options.bounds),
            inputs=kept(options.inputs),
            outputs=kept(options.outputs),
            state=kept(options.state, lambda before: (before,)),
            stream=replace(options.stream, inputs=kept(options.stream.inputs)),
            observe=tuple(name for name in options.observe if has(name)),
            external=tuple(name for name in options.external if name == ALL or has(name)),
        )

    return [own(names) for names in every]


def _of_shapes(options: Options, names: set[str]) -> set[str]:
    """Dimensions that --shape gives a name."""
    shapes = (shape for name, shape in options.shapes.items() if name in names)
    return {size for shape in shapes for size in shape if isinstance(size, str)}
