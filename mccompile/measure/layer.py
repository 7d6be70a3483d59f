"""One convolution or product as a folder of C: a function with its header, and a program that tests and times it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..base.dtypes import f32, i8
from ..driver import Options, compile
from ..emit.folder import MARK, with_report
from ..emit.package import Package
from ..emit.render import TEMPLATES, render_c
from ..expr.scalar_c import literal_c
from ..frontend.one_layer import Layer, expected, model_of, numbers
from ..passes.api import ALL
from ..passes.io.turn_io import IoLayout

_RELATIVE = 3e-5  # of floats, of the largest result


def layer_package(layer: Layer, options: Options, given: Mapping[str, np.ndarray], name: str) -> Package:
    """What `mccompile kernel` writes."""
    layer.check()
    arrays = numbers(layer, given)
    chance = np.random.default_rng(2)
    drawn = chance.integers(-128, 128, layer.x) if layer.int8 else chance.normal(0, 1, layer.x)
    x = np.asarray(drawn, np.int8 if layer.int8 else np.float32)
    wanted = expected(layer, arrays, x)
    options = replace(options, name=name, io_layout=IoLayout.NHWC, external=(ALL,), keep_inputs=True)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
        path = Path(folder, f"{name}.onnx")
        path.write_bytes(model_of(layer, arrays, name).SerializeToString())
        package = compile(path, options)
        model = path.read_bytes()
    prefix = package.plan.prefix
    context = {
        "prefix": prefix,
        "P": prefix.upper(),
        "kind": layer.kind,
        "c": "int8_t" if layer.int8 else "float",
        "exact": layer.int8,
        "tolerance": literal_c(_RELATIVE * float(np.abs(wanted).max() or 1.0), f32),
        "arena": package.plan.arena_bytes,
    }
    main = render_c(TEMPLATES / "layer_main.c.j2", context | {"x": _listed(x), "wanted": _listed(wanted)})
    shapes = {what: f"{'int8' if layer.int8 else 'f32'}{list(s)}" for what, s in (("x", layer.x), ("y", layer.result))}
    header = render_c(TEMPLATES / "layer_function.h.j2", context | shapes)
    files = {path: package.files[path] for path in package.files if path != MARK}
    files |= {"main.c": main.text.encode(), f"{prefix}_function.h": header.text.encode(), f"{prefix}.onnx": model}
    return package.with_files(with_report(files, json.loads(package.files[MARK])))


def _listed(array: np.ndarray) -> str:
    """Numbers of an initializer, some on each line."""
    dtype = f32 if array.dtype == np.float32 else i8
    flat = [literal_c(v, dtype) if dtype is f32 else str(v) for v in array.reshape(-1).tolist()]
    return "\n    " + ",\n    ".join(", ".join(flat[n : n + 8]) for n in range(0, len(flat), 8)) + "\n"
