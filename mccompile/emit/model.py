"""The model's own files: the public header, the steps, a program that runs it, and build files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

from ..base.dims import Dim, Symbol, static, upper
from ..base.dtypes import DType, f32, string
from ..base.provenance import show
from ..base.tensor import TensorType
from ..expr.dims_c import dim_c
from ..expr.scalar_c import literal_c
from ..plan.copies import copies
from ..plan.handed import Quantized
from ..plan.ir import Arena, Item, Phase, Place, Plan, Tensor, swaps
from ..plan.learning import LEARN, LOSS
from ..plan.row_calls import most_stages
from ..plan.sizes import of_states
from . import inside, runtime
from .addresses import IN_STRUCT, in_struct, places, pointer, suffix_of
from .blob import Carrier, data_bytes
from .building import build_name, cmake_tools, flags_text, make_tools
from .items import after_items, body, bring_c, chain_functions, check_c, one_slice, pieces, place_of, slices
from .render import TEMPLATES, Source, comment, render, render_c
from .run_parts import RunPart, run_parts
from .wrappers.registry import wrapper_files

_PUBLIC = {"bool", "f16", "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0"}  # named in mcc.h


def public_c(dtype: DType) -> str:
    """The element's C type in the API."""
    return f"mcc_{dtype}" if dtype.name in _PUBLIC else dtype.storage_c


def model_files(
    plan: Plan,
    identity: bytes,
    blob_align: int,
    weights_bytes: int,
    carrier: str,
    about: Sequence[str] = (),
    weights_of: str = "",
    wrappers: Sequence[str] = (),
) -> tuple[dict[str, Source], dict[str, str]]:
    """The files of C, and those of builds.

    `weights_of`: prefix of another model, whose blob is this one's as well.
    `about`: what has to be said of inputs and outputs that are not only tensors.
    `wrappers`: languages that have files of their own."""
    context = model_context(plan, identity, blob_align, weights_bytes, carrier, about, weights_of)
    return files_of(context, plan, wrappers)


def files_of(
    context: dict[str, Any], plan: Plan, wrappers: Sequence[str] = ()
) -> tuple[dict[str, Source], dict[str, str]]:
    """The same, given what their templates are told."""
    prefix = plan.prefix
    sources = {
        f"{prefix}.h": render_c(TEMPLATES / "model.h.j2", context),
        f"{prefix}.c": source_of(context),
        "main.c": render_c(TEMPLATES / "main.c.j2", context),
        **wrapper_files(wrappers, context),
    }
    builds = {
        "Makefile": render(TEMPLATES / "Makefile.j2", context | {"tools": make_tools([plan.build])}),
        "CMakeLists.txt": render(
            TEMPLATES / "CMakeLists.txt.j2", context | {"tools": cmake_tools([plan.build], plan.prefix)}
        ),
    }
    return sources, builds


def source_of(context: dict[str, Any]) -> Source:
    """The file of the steps alone."""
    return render_c(TEMPLATES / "model.c.j2", context)


def model_context(
    plan: Plan,
    identity: bytes,
    blob_align: int,
    weights_bytes: int,
    carrier: str,
    about: Sequence[str] = (),
    weights_of: str = "",
) -> dict[str, Any]:
    """What the templates of a model's own files are told."""
    written = _Written(plan)
    phases = [] if plan.sliced else [_phase(plan, *each) for each in plan.runs]
    sliced = slices(plan) if plan.sliced else []
    moving = of_states(plan)
    outside = [*_outside(plan, "input"), *_outside(plan, "output")]
    return {
        "prefix": plan.prefix,
        "P": plan.prefix.upper(),
        "N": plan.prefix.upper(),
        "library": build_name(plan.prefix),
        "program": build_name(plan.prefix),
        "target": plan.target,
        "flags": flags_text(plan.build),
        "title": comment(plan.name).replace('"', "'"),
        "inputs": [_tensor(plan.prefix, t, written.spares(t), "input") for t in plan.inputs],
        "outputs": [_tensor(plan.prefix, t, True) for t in plan.outputs],
        "arena_bytes": plan.arena_bytes,
        "parameters": _parameters(plan),
        "arguments": ", ".join(f"{arena.base}, sizeof {arena.base}" for arena in plan.arenas),
        "arenas": [_arena(arena) for arena in plan.arenas],
        "weights_bytes": weights_bytes,
        "weights_of": weights_of or plan.prefix,
        "about": [comment(line) for line in about],
        "blob_align": blob_align,
        "data_bytes": data_bytes(plan),
        "checks": _checks(plan),
        "window": _window(plan),
        "arena_names": [name for arena in plan.arenas for name in (arena.base, f"{arena.base}_bytes")],
        "arena_parameters": _parameters(plan)[:-2],
        "carrier": carrier,
        "runtime_version": runtime.VERSION,
        "variants": [],
        "file_flags": [],
        "sources": [
            f"{plan.prefix}{part}.c"
            for part in ("", "_kernels", *([] if carrier == Carrier.EXTERNAL else ["_weights"]))
        ],
        "macs": sum(step.macs for step in plan.steps()),
        **identity_c(identity),
        "phases": phases,
        "learns": _learns(plan),
        "advances": plan.advances,
        "sliced": plan.sliced,
        "slices": sliced,
        "one_slice": one_slice(sliced),
        "queues": any(step.function.kernel.queued(step.function.call) for step in plan.steps()),
        "row_stages": most_stages(plan) if plan.sliced else 0,
        "tables": list(dict.fromkeys(step.table for step in plan.steps() if step.table)),
        "states": _state(plan),
        "state_bytes": state_bytes(plan),
        "moving": [symbol.name.removeprefix("n_") for symbol in plan.given if symbol.name in moving],
        "string_inputs": any(t.type.dtype is string for t in plan.inputs),
        "has_strings": any(t.type.dtype is string for t in (*plan.inputs, *plan.outputs)),
        "not_negative": [dim_c(dim) for dim in plan.not_negative],
        "given": [_size(symbol) for symbol in plan.given],
        "measured": [_size(symbol) for symbol in plan.measured],
        "sizes": [_size(symbol) for symbol in (*plan.given, *plan.measured)],
        "moved": " || ".join(f"m->{symbol.name} != {symbol.name}" for symbol in plan.given if symbol.name in moving),
        "resize_parameters": "".join(f", mcc_index {symbol.name}" for symbol in plan.given),
        "shaped": [
            {**_tensor(plan.prefix, t, True), "way": way}
            for way, tensors in (("input", plan.inputs), ("output", plan.outputs))
            for t in tensors
            if not t.type.is_static
        ],
        "places": [_place(place) for place in places(plan)],
        "streams": plan.streams,
        "profiled": plan.profiled,
        "step_names": inside.step_names(plan) if plan.profiled else [],
        "dumped": plan.dumped,
        "ticking": plan.ticking,
        "given_now": inside.given(plan) if plan.dumped else "",
        "checksums": _checksums(plan),
        "stream": _stream(plan),
        "pieces": [piece for step in plan.steps() if step.shared for piece in pieces(step, step.shared)],
        "parallel": plan.parallel,
        "threads": max((step.shared.workers for step in plan.steps() if step.shared), default=1),
        "outside": outside,
        "placed": [t for t in outside if not t["rows"]],
        "fetched": [t for t in outside if t["rows"]],
        "turns": any(swap.now for swap in swaps(plan.items)),
        "pointers": any(swap.now for swap in swaps(plan.items)) or any(t.is_outside for t in plan.outputs),
    }


def _phase(plan: Plan, phase: Phase, items: Sequence[Item]) -> dict[str, Any]:
    """A function that programs call."""
    parts = run_parts(phase.name, items)
    arguments = [
        {"name": t.name, "c": public_c(t.type.dtype), "address": pointer(t.address, public_c(t.type.dtype), False)}
        for t in phase.arguments
    ]
    return {
        "name": phase.name,
        "parts": parts,
        "functions": [*chain_functions(items), *parts],
        "body": _statements(plan, phase, items, parts),
        "parameters": "".join(f", {each['c']} {each['name']}" for each in arguments),
        "arguments": arguments,
        "after": "" if phase.after is None else pointer(phase.after, "float", True),
    }


def _statements(plan: Plan, phase: Phase, items: Sequence[Item], parts: Sequence[RunPart]) -> str:
    """The items of a phase, or calls of its parts."""
    if not parts:
        return body(plan, phase, items)
    return "\n".join([*(part.call for part in parts), after_items(phase)]).rstrip("\n") + "\n"


def _learns(plan: Plan) -> dict[str, Any] | None:
    """What a program that learns has besides."""
    if not any(phase.name == LEARN for phase in plan.phases):
        return None
    (loss,) = (state.tensor for state in plan.states if state.tensor.name == LOSS)
    stores = any(state.stored and state.initial is None for state in plan.states)
    return {"loss": pointer(loss.address, "float", True, IN_STRUCT), "stores": stores}


def _parameters(plan: Plan) -> list[str]:
    """Of init."""
    arenas = [(f"void *{arena.base}", f"size_t {arena.base}_bytes") for arena in plan.arenas]
    return [f"{plan.prefix}_model *m", *chain(*arenas), "const void *weights", "size_t weights_bytes"]


def _checks(plan: Plan) -> list[dict[str, str]]:
    """What is true of a blob that code can trust, and what brings the tables for that where they are copied."""
    brought = copies(plan.items)
    found = []
    for check in plan.checks:
        first = check.offsets[0]
        copy = next((c for c in brought if c.source <= first < c.source + c.bytes), None)
        found.append({"holds": check_c(check, copy), "bring": bring_c(copy) if copy is not None else ""})
    return found


def _window(plan: Plan) -> dict[str, Any] | None:
    """Where weights come through a window, memory in which init may read the blob."""
    if not plan.window:
        return None
    largest = max(copies(plan.items), key=lambda copy: copy.bytes, default=None)
    if largest is None:
        return {"room": "NULL", "bytes": 0}
    return {"room": pointer(place_of(largest, largest.source), "uint8_t", False), "bytes": largest.bytes}


def identity_c(identity: bytes) -> dict[str, str]:
    """What code has of its identity: the bytes, and what marks a struct as initialised."""
    octets = ", ".join(f"0x{byte:02X}" for byte in identity)
    return {"identity": octets, "ready": f"0x{identity[:4].hex().upper()}u"}


def _arena(arena: Arena) -> dict[str, object]:
    """`base` names its field, parameter and array; `suffix` stands in names of macros."""
    return {
        "base": arena.base,
        "suffix": suffix_of(arena.base),
        "bytes": arena.bytes,
        "size": max(arena.bytes, 1),  # C has no arrays of length 0
        "align": arena.align,
    }


def _place(place: Place) -> dict[str, object]:
    what = show(tuple(place.name.split(" + ")))
    return {"symbol": place.symbol, "begin": place.begin, "what": f"{place.bytes} bytes: {comment(what)}"}


def state_bytes(plan: Plan) -> int:
    """Of what is saved: all states, and how many pushes there were."""
    return sum(state.tensor.type.max_bytes for state in plan.states) + (4 if plan.streamed else 0)


def _stream(plan: Plan) -> dict[str, object] | None:
    """Where a run takes the newest frames."""
    if plan.streamed is None:
        return None
    symbols = {tensor.name: tensor.symbol for tensor in plan.outputs}
    outputs = [
        {"S": symbols[o.name].upper(), "title": comment(o.name).replace('"', "'"), "latency": o.latency}
        for o in plan.streamed.outputs
        if o.name in symbols
    ]
    inputs = ", ".join(f'"{name}" along axis {axis}' for name, axis in plan.streamed.inputs.items())
    sizes = {"window": plan.streamed.window, "hop": plan.streamed.hop, "warm_up": plan.streamed.warm_up}
    kept = {state.tensor.name: state.tensor.symbol for state in plan.states}
    own = [kept[name] for name in plan.streamed.own if name in kept] if plan.streamed.warm_up > 1 else []
    return {"inputs": comment(inputs), "outputs": outputs, "own": own, **sizes}


def _outside(plan: Plan, way: str) -> list[dict[str, object]]:
    """Inputs or outputs whose memory is the program's own."""
    tensors = plan.inputs if way == "input" else plan.outputs
    return [{**_tensor(plan.prefix, t, True), "way": way} for t in tensors if t.is_outside]


def _size(symbol: Symbol) -> dict[str, object]:
    return {"name": symbol.name, "low": symbol.low, "high": symbol.high}


def _state(plan: Plan) -> list[dict[str, object]]:
    """States for templates, with the place of each in what save_state copies. `stored`: what outlives the power."""
    found, start = [], 0
    for state in plan.states:
        typed = public_c(state.tensor.type.dtype)
        initial = "" if state.initial is None else pointer(state.initial, typed, True, IN_STRUCT)
        source = 0 if state.initial is None else state.initial.offset
        known = {"start": start, "initial": initial, "source": source, "stored": state.stored}
        found.append({**_tensor(plan.prefix, state.tensor, True), **known})
        start += state.tensor.type.max_bytes
    return found


class _Written:
    """The bytes of arenas that steps and loops write."""

    def __init__(self, plan: Plan) -> None:
        ranges: dict[str, list[tuple[int, int]]] = {arena.base: [] for arena in plan.arenas}
        for swap in swaps(plan.items):
            for place in (swap.first, swap.second, swap.last):
                if place.base in ranges:
                    ranges[place.base].append((static(place.offset), static(place.offset) + swap.bytes))
        for argument in (a for step in plan.steps() for a in step.arguments if a.written):
            ranges.setdefault(argument.address.base, []).append((argument.low, argument.high))
        self.lows = {base: [low for low, _ in sorted(found)] for base, found in ranges.items()}
        self.reach = {
            base: list(accumulate((high for _, high in sorted(found)), max)) for base, found in ranges.items()
        }

    def spares(self, tensor: Tensor) -> bool:
        """Does an input still hold its elements after a run?"""
        if tensor.is_outside:
            return True
        low, high = _range(tensor)
        before = bisect_left(self.lows.get(tensor.address.base, []), high)  # so many begin below its end
        return not before or self.reach[tensor.address.base][before - 1] <= low


def _range(tensor: Tensor) -> tuple[int, int]:
    offset = tensor.address.offset
    assert isinstance(offset, int)
    return offset, offset + tensor.type.max_bytes


def _tensor(prefix: str, tensor: Tensor, kept: bool, way: str = "output") -> dict[str, object]:
    type = tensor.type
    count = type.max_bytes if type.dtype.is_packed else _count(type)
    printed = _printed(type.dtype)
    elements = tensor.address.base if tensor.is_outside else f"{prefix}_{way}_{tensor.symbol}(&m)"
    element = f"{elements}[i]"
    return {
        "symbol": tensor.symbol,
        "S": tensor.symbol.upper(),
        "title": comment(tensor.name).replace('"', "'"),
        "type": str(type),
        "c": public_c(type.dtype),
        "count": count,
        "bytes": type.max_bytes,
        "preserved": int(kept),
        "preserved_text": "the input is intact after a run" if kept else "a run overwrites the input",
        "outside": tensor.is_outside,
        "rows": tensor.rows,
        "align": tensor.align,
        "room": max(tensor.room, 1),
        "slots": max(-(-tensor.room // max(type.dtype.bits // 8, 1)), 1),
        "field": tensor.address.base,
        "address": "" if tensor.is_outside else pointer(tensor.address, public_c(type.dtype), False, IN_STRUCT),
        "shape": [dim_c_of_struct(dim) for dim in type.shape],
        "rank": type.rank,
        "is_static": type.is_static,
        "packed": 8 // type.dtype.bits if type.dtype.is_packed else 1,  # elements in a byte
        "quantized": _quantized(tensor.quantized),
        "format": printed[0],
        "is_string": type.dtype is string,
        "elements": elements,
        "shown": printed[1].format(element),
    }


_LISTED = 32  # numbers of channels that a header has


def _quantized(found: Quantized | None) -> list[str]:
    """What integers stand for, as ends of macros."""
    if found is None:
        return []
    scales = [literal_c(scale, f32) for scale in found.scales]
    zeros = [f"({zero})" if zero < 0 else str(zero) for zero in found.zeros]
    if found.axis is None:
        return [f"SCALE {scales[0]} /* an integer q stands for (q - zero point) * scale */", f"ZERO_POINT {zeros[0]}"]
    lines = [f"CHANNELS {len(scales)}u /* along axis {found.axis}, each with a scale and a zero point */"]
    lists = [f"SCALES {{{', '.join(scales)}}}", f"ZERO_POINTS {{{', '.join(zeros)}}}"]
    return lines + (lists if len(scales) <= _LISTED else [])


def dim_c_of_struct(dim: Dim) -> str:
    return f"(size_t)({in_struct(dim)})"


def _printed(dtype: DType) -> tuple[str, str]:
    """printf format, and C of its arguments for an element {0}; what C cannot print as a number is printed as bits."""
    if dtype is string:
        return '\\"%.*s\\"', "(int){0}.size, {0}.data"
    if dtype.compute_c in ("float", "double") and dtype.is_plain:
        return "%g", "(double){0}"
    if dtype.kind == "int" and not dtype.is_packed:
        return "%ld", "(long){0}"
    return "%lu", "(unsigned long){0}"


def _count(type: TensorType) -> int:
    """Elements, at the upper bounds of what is known only at run time."""
    return upper(type.count)


def _checksums(plan: Plan) -> list[str]:
    """How init computes them, in front of the header that does."""
    if plan.trusts_blob:
        return ["#ifndef MCC_NO_CRC", "#define MCC_NO_CRC", "#endif"]
    if plan.crc_table:
        return ["#if UINTPTR_MAX <= 0xFFFFFFFFu && !defined(MCC_CRC_TABLE)", "#define MCC_CRC_TABLE", "#endif"]
    return []
