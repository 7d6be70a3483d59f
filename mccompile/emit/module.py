"""A package as a module: code and weights as one file that a program loads, which knows nothing of the model.

Invariant: the model's own C files are those of the package, so blob and identity are the same; added are an entry point
with the table of tensors, what builds the module, and a program that opens one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.dims import Dim
from ..base.dtypes import f32, string
from ..base.errors import Problem, UnsupportedModel, WrongUse
from ..base.records import replace
from ..expr.scalar_c import literal_c
from ..plan.ir import Plan, Tensor
from . import blob as blob_format
from .building import build_name, make_tools
from .files import Files
from .folder import MARK, with_report
from .model import model_context
from .output import Output
from .package import Package
from .render import TEMPLATES, render, render_c
from .runtime import runtime_headers

SHAPE = 8  # MCC_MODULE_SHAPE of mcc_module.h
_AT_RUN_TIME = "0xFFFFFFFFu"
_ENTRY, _PROGRAM, _SEAL = "model_entry.c.j2", "module_main.c.j2", "module_seal.c.j2"


_REFUSED = {
    "advance": ("--advance", "a module has one function that runs"),
    "single_file": ("--single-file", "a module is built from several files, which mccompile keeps apart"),
    "profile": ("--profile", "the names of steps would be addresses, and a module has none"),
    "dump_values": ("--dump-values", "the names of tensors would be addresses, and a module has none"),
    "functions": ("--external", "a function that is linked later is not a part of a module"),
    "accelerator": ("--accelerator", "the driver of an accelerator is not a part of a module"),
    "wrappers": ("--wrapper", "wrappers call the model's own functions, and a module has one entry point"),
    "weights_section": ("--weights-section", "a module is one piece"),
    "weights_window": ("--weights-window", "a module is one piece"),
}


def refuse_with(options: Mapping[str, Any]) -> None:
    """`options`: all that was asked for, by its name."""
    found = [reason for name, reason in _REFUSED.items() if options[name]]
    if options["threads"] > 1:
        found.append(("--threads", "workers of the program do not know what the module's code keeps in a register"))
    if any(form.rows for form in options["inputs"].values()):
        found.append(("rows of --input", "a function that the program gives a model is not a part of a module's table"))
    if options["blob"] == blob_format.Carrier.EXTERNAL:
        found.append(("--blob external", "a module is code and weights together"))
    if options["module"] and found:
        flag, why = found[0]
        fix = f"leave out {flag.split()[0]}"
        raise WrongUse(Problem(f"a module does not go with {flag}", "--module", why, fix))


def refuse_several(modules: Sequence[bool], targets: Iterable[str]) -> None:
    """Which of the models are to be modules, and for what."""
    several = next((f"--target {target}" for target in targets if "," in target), "")
    where = f"{len(modules)} models" if len(modules) > 1 else several
    if any(modules) and where:
        fix = "compile each alone, into a folder of its own"
        raise WrongUse(Problem("a module is one model for one target", where, "it has one entry point", fix))


def as_module(package: Package, carrier: str) -> Package:
    _refuse(package.plan)
    return package.printed_as(lambda: _printed(package, carrier))


def _printed(package: Package, carrier: str) -> Output:
    plan = package.plan
    context = _context(package, carrier)
    prefix = plan.prefix
    sources = {
        f"{prefix}_entry.c": render_c(TEMPLATES / _ENTRY, context),
        "main.c": render_c(TEMPLATES / _PROGRAM, context),
    }
    seal = (TEMPLATES / _SEAL).read_text(encoding="utf-8")
    made = {path: source.text for path, source in sources.items()}
    made |= {
        "mcc_seal.c": seal,
        f"{prefix}.ld": render(TEMPLATES / "module.ld.j2", context),
        "Makefile": render(TEMPLATES / "module.Makefile.j2", context),
    }
    made |= runtime_headers(header for source in sources.values() for header in source.includes)
    kept = Files.of(package.files).only(path for path in package.files if path not in (MARK, "CMakeLists.txt"))
    report = {**json.loads(package.files[MARK]), "module": f"{prefix}.mcm"}
    includes = {**package.includes, **{path: sorted(source.includes) for path, source in sources.items()}}
    includes = {path: names for path, names in includes.items() if path in kept or path in made}
    files = kept | {path: text.encode() for path, text in made.items()}
    return replace(package.output(), files=with_report(files, report), includes=includes)


def _refuse(plan: Plan) -> None:
    tensors = (*plan.inputs, *plan.outputs)
    why = fix = ""
    if plan.build.is_wasm:
        why, fix = "WebAssembly's own modules are that already", "leave out --module"
    elif any(tensor.type.dtype is string for tensor in tensors):
        why, fix = "strings are addresses, which a table of tensors cannot tell of", "leave out --module"
    elif len(plan.arenas) > 1:
        why, fix = "it has several arenas, and a module's program gives one", "leave out --mem"
    elif any(tensor.type.rank > SHAPE for tensor in tensors):
        why, fix = f"a tensor has more than {SHAPE} axes, for which its table has no room", "leave out --module"
    if why:
        raise UnsupportedModel(Problem("there is no module of this model", plan.name, why, fix))


def _context(package: Package, carrier: str) -> dict[str, Any]:
    plan = package.plan
    alignment = max(16, plan.arena_align)
    context = model_context(plan, package.identity, alignment, package.weights_bytes, carrier)
    names, at = bytearray(), []
    tensors = [*plan.inputs, *plan.outputs, *(state.tensor for state in plan.states)]
    for tensor in tensors:
        at.append(len(names))
        names += tensor.name.encode("utf-8", "surrogateescape") + b"\0"
    known = [{**t, "way": way} for way in ("input", "output", "state") for t in context[f"{way}s"]]
    return context | {
        "tools": make_tools([plan.build]),
        "objects": [source.removesuffix(".c") + ".o" for source in [*context["sources"], f"{plan.prefix}_entry.c"]],
        "program": build_name(plan.prefix),
        "weights_of": plan.prefix,
        "tensors": [
            {**facts, **_row(tensor), "number": number, "name_at": start}
            for number, (tensor, facts, start) in enumerate(zip(tensors, known, at, strict=True))
        ],
        "names": [str(byte) if byte < 128 else f"(char)({byte - 256})" for byte in names] or ["0"],
        "names_bytes": len(names),
    }


def _row(tensor: Tensor) -> dict[str, Any]:
    """What the table says of a tensor besides its size in bytes."""
    sizes = [*map(_size, tensor.type.shape), *["0u"] * SHAPE][:SHAPE]
    found = tensor.quantized if tensor.quantized and tensor.quantized.axis is None else None
    return {
        "element": tensor.type.dtype.onnx,
        "sizes": sizes,
        "table_room": max(tensor.room, 1) if tensor.is_outside else 0,
        "table_align": tensor.align if tensor.is_outside else 0,
        "is_quantized": int(found is not None),
        "scale": literal_c(found.scales[0], f32) if found else "0.0f",
        "zero": found.zeros[0] if found else 0,
    }


def _size(dim: Dim) -> str:
    return f"{dim}u" if isinstance(dim, int) else _AT_RUN_TIME
