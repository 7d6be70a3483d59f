"""Inputs as sensors give them and outputs as programs want them: which forms are drawn, and what a program is fed with
then, instead of what the model takes. What a form means is said once, in numpy, by mccompile's own `Handover`: checks
of users compare with that as well, and tests/passes/io hold it against OpenCV and against arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mccompile.base.dtypes import DTYPES
from mccompile.base.errors import MccError
from mccompile.driver import Options
from mccompile.frontend.load import load_proto
from mccompile.measure.handing import handing_over
from mccompile.ops.camera import FORMATS
from mccompile.passes.io.io_forms import Handover, InputForm, OutputForm, class_axis

from .builder import Input
from .subject import Arrays, Subject

SHARE = 0.06  # of the programs, for inputs and for outputs
WHOLE = ("u8", "i8", "i16", "u16", "i32", "u32", "i64", "u64")
Chance = np.random.Generator


@dataclass(frozen=True)
class Fed:
    """What a program is given in each run, and what the model sees of it."""

    given: Sequence[Arrays]
    seen: Sequence[Arrays]
    handover: Handover
    orders: Mapping[str, Sequence[int]]  # of axes, of what is handed over channels-last


def inputs(chance: Chance, subject: Subject, machine: Any) -> Mapping[str, InputForm] | None:
    formed, by_rows = chance.random() < SHARE, chance.random() < SHARE
    if not formed and not by_rows:
        return None
    free = [made for made in subject.inputs if made.name not in subject.state.values()]
    drawn = {made.name: _input(chance, made) if formed and chance.random() < 0.5 else InputForm() for made in free}
    if by_rows:
        rows = [made.name for made in free if _may_have_rows(made) or chance.random() < 0.1]
        drawn |= {name: replace(drawn[name], rows=True) for name in rows if chance.random() < 0.7}
    return {name: form for name, form in drawn.items() if form != InputForm()}


def _may_have_rows(made: Input) -> bool:
    """Is it of known sizes, more than one element, and no batch?"""
    sizes = [size for size in made.dims if isinstance(size, int)]
    is_batch = len(sizes) > 3 and sizes[0] != 1
    return len(sizes) == len(made.dims) and max(sizes, default=1) > 1 and not is_batch and made.dtype != object


def _input(chance: Chance, made: Input) -> InputForm:
    picture = len(made.dims) == 4
    if made.kind not in ("exact", "normal") or made.dtype.name != "float32" or chance.random() < 0.3:
        return InputForm(nhwc=picture)
    if picture and made.dims[0] == 1 and made.dims[1] in (1, 3) and chance.random() < 0.8:
        return _camera(chance, [size for size in made.dims[2:] if isinstance(size, int)])
    dtype = str(chance.choice(["u8", "i8", "u16", "i16", "f16", "f32"]))
    mean, scale = (float(chance.choice([0.0, 32.0, -2.5])), float(chance.choice([0.125, 1.0, 1 / 58])))
    three = [axis for axis in (1, len(made.dims) - 1) if 0 < axis < len(made.dims) and made.dims[axis] == 3]
    several = bool(three) and chance.random() < 0.5
    return InputForm(
        DTYPES[dtype],
        nhwc=picture and chance.random() < 0.3,
        bgr=bool(three) and chance.random() < 0.3,
        mean=(mean, mean + 1, mean) if several else (mean,),
        scale=(scale,),
    )


def _camera(chance: Chance, sizes: Sequence[int]) -> InputForm:
    """A frame of a size that the format has, at times cut, and resized where it is not that of the model."""
    if len(sizes) != 2:
        return InputForm()
    format = str(chance.choice(FORMATS))
    width, height = (2 * int(chance.integers(1, 12)) for _ in range(2))
    crop: tuple[int, ...] = ()
    if chance.random() < 0.4:
        x, y = int(chance.integers(0, width)), int(chance.integers(0, height))
        crop = x, y, int(chance.integers(1, width - x + 1)), int(chance.integers(1, height - y + 1))
    mode = str(chance.choice(["bilinear", "bilinear", "nearest", "area"]))
    box = int(chance.integers(0, 256)) if chance.random() < 0.3 else None
    scale = (1 / 255,) if chance.random() < 0.5 else ()
    form = InputForm(camera=format, resize=mode, frame=(width, height), crop=crop, letterbox=box, scale=scale)
    if chance.random() < 0.2:  # as it is
        form = InputForm(camera=format, frame=(sizes[1], sizes[0]), scale=scale)
    return form


def outputs(chance: Chance, subject: Subject, machine: Any) -> Mapping[str, OutputForm] | None:
    if chance.random() > SHARE:
        return None
    drawn = {}
    for output in subject.model.graph.output:
        name, type = output.name, output.type.tensor_type
        if name in subject.state or chance.random() > 0.5:
            continue
        rank = len(type.shape.dim)
        if name in subject.exact and rank > 0 and chance.random() < 0.3:
            classes = type.shape.dim[class_axis(rank)]
            least = classes.dim_value or min(subject.free.get(classes.dim_param, (0,)))
            if least > 0:  # else there may be none, which ends the run with a status
                drawn[name] = OutputForm(argmax=True)
        elif type.elem_type == 1 and rank > 0 and chance.random() < 0.5:
            scale, zero = float(chance.choice([0.5, 8.0, 2.0**60])), float(chance.choice([0.0, -16.0]))
            drawn[name] = OutputForm(zero=(zero,), scale=(scale,))
            if name in subject.exact and chance.random() < 0.5:  # else what is rounded may be one off
                plain = chance.random() < 0.5
                drawn[name] = replace(OutputForm() if plain else drawn[name], dtype=DTYPES[chance.choice(WHOLE)])
        elif rank == 4:
            drawn[name] = OutputForm(nhwc=True)
    return drawn


def fed(subject: Subject, options: Options, runs: Sequence[Arrays]) -> Fed | None:
    """None where programs take and give what the model does, or where that is refused."""
    plain = (InputForm(), InputForm(nhwc=True), OutputForm(), OutputForm(nhwc=True))
    forms = (*(replace(form, rows=False) for form in options.inputs.values()), *options.outputs.values())
    if all(form in plain for form in forms):
        return None
    try:
        graph = load_proto(subject.model, None, options.dims, options.shapes, bounds=options.bounds)
        handover, orders = handing_over(graph, options)
    except MccError:  # as the program is, with the reason
        return None
    given = [{n: handover.given(n, a) if n in handover.inputs else a for n, a in run.items()} for run in runs]
    seen = [{n: handover.seen(n, a) if n in handover.inputs else a for n, a in run.items()} for run in given]
    return Fed(given, seen, handover, orders)


def is_as_before(fed: Fed, runs: Sequence[Arrays]) -> bool:
    """Does the model see what it would without forms? Then what was exact still is."""
    pairs = zip(fed.seen, runs, strict=True)
    return all(np.array_equal(seen[name], run[name]) for seen, run in pairs for name in fed.handover.inputs)
