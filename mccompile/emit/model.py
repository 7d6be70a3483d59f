"""The model's own files: the public header, the steps, a program that runs it, and build files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..base.dims import Dim, Symbol, static, symbols, upper
from ..base.dtypes import DType, string
from ..base.provenance import show
from ..base.tensor import TensorType
from ..expr.dims_c import dim_c
from ..plan.ir import (
    BLOB,
    STREAMS,
    Address,
    Arena,
    Argument,
    Branch,
    Halt,
    Item,
    Measured,
    Plan,
    Repeat,
    RowRegion,
    Shared,
    State,
    Step,
    Swap,
    Tensor,
    arena_base,
    is_arena,
    is_outside,
    max_bytes,
    outside,
    swaps,
)
from .render import TEMPLATES, comment, render, render_c
from .rows import row_region

_PUBLIC = {"bool", "f16", "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0"}  # named in mcc.h


def public_c(dtype: DType) -> str:
    """The element's C type in the API."""
    return f"mcc_{dtype}" if dtype.name in _PUBLIC else dtype.storage_c


def model_files(
    plan: Plan,
    identity: bytes,
    blob_align: int,
    weights_bytes: int,
    runtime_version: int,
    carrier: str,
    about: Sequence[str] = (),
    weights_of: str = "",
) -> dict[str, str]:
    """`weights_of`: prefix of another model, whose blob is this one's as well.
    `about`: what has to be said of inputs and outputs that are not only tensors."""
    context = _context(plan, identity, blob_align, weights_bytes, runtime_version, carrier)
    context["weights_of"] = weights_of or plan.prefix
    context["about"] = [comment(line) for line in about]
    prefix = plan.prefix
    return {
        f"{prefix}.h": render_c(TEMPLATES / "model.h.j2", context),
        f"{prefix}.c": render_c(TEMPLATES / "model.c.j2", context),
        "main.c": render_c(TEMPLATES / "main.c.j2", context),
        "Makefile": render(TEMPLATES / "Makefile.j2", context),
        "CMakeLists.txt": render(TEMPLATES / "CMakeLists.txt.j2", context),
    }


def _context(
    plan: Plan, identity: bytes, blob_align: int, weights_bytes: int, runtime_version: int, carrier: str
) -> dict[str, object]:
    octets = [f"0x{byte:02X}" for byte in identity]
    return {
        "prefix": plan.prefix,
        "P": plan.prefix.upper(),
        "title": comment(plan.name).replace('"', "'"),
        "inputs": [_tensor(plan.prefix, t, preserved(plan, t), "input") for t in plan.inputs],
        "outputs": [_tensor(plan.prefix, t, True) for t in plan.outputs],
        "arena_bytes": plan.arena_bytes,
        "parameters": ", ".join(f"void *{arena.base}, size_t {arena.base}_bytes" for arena in plan.arenas),
        "arguments": ", ".join(f"{arena.base}, sizeof {arena.base}" for arena in plan.arenas),
        "arenas": [_arena(arena) for arena in plan.arenas],
        "weights_bytes": weights_bytes,
        "blob_align": blob_align,
        "carrier": carrier,
        "runtime_version": runtime_version,
        "macs": sum(step.macs for step in plan.steps()),
        "identity": ", ".join(octets),
        "ready": identity[:4].hex().upper(),
        "body": "" if plan.sliced else _body(plan),
        "sliced": plan.sliced,
        "slices": _slices(plan) if plan.sliced else [],
        "tables": list(dict.fromkeys(step.table for step in plan.steps() if step.table)),
        "states": _state(plan.prefix, plan.states),
        "state_bytes": sum(max_bytes(state.tensor.type) for state in plan.states),
        "state_moves": any(not state.tensor.type.is_static for state in plan.states),
        "string_inputs": any(t.type.dtype is string for t in plan.inputs),
        "has_strings": any(t.type.dtype is string for t in (*plan.inputs, *plan.outputs)),
        "not_negative": [dim_c(dim) for dim in plan.not_negative],
        "given": [_size(symbol) for symbol in plan.given],
        "measured": [_size(symbol) for symbol in plan.measured],
        "sizes": [_size(symbol) for symbol in (*plan.given, *plan.measured)],
        "same_sizes": " && ".join(f"m->{symbol.name} == {symbol.name}" for symbol in plan.given),
        "resize_parameters": "".join(f", mcc_index {symbol.name}" for symbol in plan.given),
        "shaped": [
            {**_tensor(plan.prefix, t, True), "way": way}
            for way, tensors in (("input", plan.inputs), ("output", plan.outputs))
            for t in tensors
            if not t.type.is_static
        ],
        "streams": plan.streams,
        "pieces": [piece for step in plan.steps() if step.shared for piece in _pieces(step, step.shared)],
        "threads": max((step.shared.workers for step in plan.steps() if step.shared), default=1),
        "outside": [*_outside(plan, "input"), *_outside(plan, "output")],
        "turns": any(swap.now for swap in swaps(plan.items)),
        "pointers": any(swap.now for swap in swaps(plan.items)) or any(t.is_outside for t in plan.outputs),
    }


def _arena(arena: Arena) -> dict[str, object]:
    """`base` names its field, parameter and array; `suffix` stands in names of macros."""
    return {
        "base": arena.base,
        "suffix": suffix_of(arena.base),
        "bytes": arena.bytes,
        "size": max(arena.bytes, 1),  # C has no arrays of length 0
        "align": arena.align,
    }


def suffix_of(base: str) -> str:
    return base.removeprefix(arena_base("")).upper()


def _outside(plan: Plan, way: str) -> list[dict[str, object]]:
    """Inputs or outputs whose memory is the program's own."""
    tensors = plan.inputs if way == "input" else plan.outputs
    return [{**_tensor(plan.prefix, t, True), "way": way} for t in tensors if t.is_outside]


def _size(symbol: Symbol) -> dict[str, object]:
    return {"name": symbol.name, "low": symbol.low, "high": symbol.high}


def _body(plan: Plan) -> str:
    """The steps. Sizes that are known only at run time are variables where they are needed."""
    text = "\n".join([*_items(plan.items, "    "), *_states(plan.states)])
    for symbol in plan.measured:
        used = len(re.findall(rf"\b(?<!->){symbol.name}\b", text)) > 1
        variable = f"const mcc_index {symbol.name} = m->{symbol.name};"
        text = text.replace(f"@{symbol.name}@", variable if used else "", 1)
    given = [s.name for s in plan.given if re.search(rf"\b{s.name}\b", text)]
    return "\n".join([*(f"    const mcc_index {name} = m->{name};" for name in given), text])


def _slices(plan: Plan) -> list[str]:
    """The same, item by item, each with the sizes that it needs."""
    texts = ["\n".join(_items((item,), "        ")).rstrip("\n") for item in plan.items]
    kept = [f"    {line}".rstrip() for line in _states(plan.states)]
    texts += ["\n".join(kept).rstrip("\n")] * bool(kept)
    slices = []
    for text in texts:
        text = re.sub(r"\n *@\w+@", "", text)
        names = [s.name for s in (*plan.given, *plan.measured) if re.search(rf"\b(?<!->){s.name}\b", text)]
        slices.append("\n".join([*(f"        const mcc_index {name} = m->{name};" for name in names), text]))
    return slices


def _states(states: tuple[State, ...]) -> list[str]:
    """Brings what the next run is to find to its place, where it has not been made there."""
    lines = []
    for state in states:
        if state.made == state.tensor.address:
            continue
        type = state.tensor.type
        size = dim_c(type.count * type.dtype.bits // 8) if not type.is_static else str(max_bytes(type))
        size = size if type.is_static else f"(size_t)({size})"
        places = (_pointer(state.tensor.address, "uint8_t", False), _pointer(state.made, "uint8_t", True))
        lines.append(f'    /* state "{comment(state.tensor.name)}" for the next run */')
        lines.append(f"    memcpy({', '.join(places)}, {size});")
    return [*lines, ""] if lines else []


def _state(prefix: str, states: tuple[State, ...]) -> list[dict[str, object]]:
    """The same for templates, with the place of each in what is saved."""
    found, start = [], 0
    for state in states:
        found.append({**_tensor(prefix, state.tensor, True), "start": start})
        start += max_bytes(state.tensor.type)
    return found


def preserved(plan: Plan, tensor: Tensor) -> bool:
    """Does an input still hold its elements after a run? Not where a step writes into its bytes."""
    if tensor.is_outside:
        return True
    low, high = _range(tensor)
    for swap in swaps(plan.items):
        for place in (swap.first, swap.second, swap.last):
            if (
                place.base == tensor.address.base
                and low < static(place.offset) + swap.bytes
                and static(place.offset) < high
            ):
                return False
    return not any(
        a.written and a.address.base == tensor.address.base and a.low < high and low < a.high
        for step in plan.steps()
        for a in step.arguments
    )


def _range(tensor: Tensor) -> tuple[int, int]:
    offset = tensor.address.offset
    assert isinstance(offset, int)
    return offset, offset + max_bytes(tensor.type)


def _tensor(prefix: str, tensor: Tensor, kept: bool, way: str = "output") -> dict[str, object]:
    type = tensor.type
    count = max_bytes(type) if type.dtype.is_packed else _count(type)
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
        "bytes": max_bytes(type),
        "preserved": int(kept),
        "preserved_text": "the input is intact after a run" if kept else "a run overwrites the input",
        "outside": tensor.is_outside,
        "align": tensor.align,
        "room": max(tensor.room, 1),
        "slots": max(-(-tensor.room // max(type.dtype.bits // 8, 1)), 1),
        "field": tensor.address.base,
        "address": "" if tensor.is_outside else _pointer(tensor.address, public_c(type.dtype), const=False),
        "shape": [dim_c_of_struct(dim) for dim in type.shape],
        "rank": type.rank,
        "format": printed[0],
        "is_string": type.dtype is string,
        "elements": elements,
        "shown": printed[1].format(element),
    }


def dim_c_of_struct(dim: Dim) -> str:
    return f"(size_t)({_in_struct(dim)})"


def _in_struct(dim: Dim) -> str:
    """A dimension where sizes are fields of the model's struct."""
    text = dim_c(dim)
    for symbol in symbols(dim):
        text = re.sub(rf"\b{symbol.name}\b", f"m->{symbol.name}", text)
    return text


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


def _items(items: tuple[Item, ...], indent: str) -> list[str]:
    lines: list[str] = []
    for item in items:
        if isinstance(item, Branch):
            lines.append(f"{indent}/* {comment(show(item.provenance))} */")
            lines.append(f"{indent}if (*{_pointer(item.condition.address, 'uint8_t', const=True)} != 0u) {{")
            lines += _items(item.then, indent + "    ")
            if item.otherwise:
                lines.append(f"{indent}}} else {{")
                lines += _items(item.otherwise, indent + "    ")
            lines.append(f"{indent}}}")
        elif isinstance(item, Repeat):
            lines += [*_repeat(item, indent), ""]
        elif isinstance(item, Measured):
            lines += _measured(item, indent)
        elif isinstance(item, Halt):
            lines.append(f"{indent}/* {comment(show(item.provenance))}: {comment(item.why)} */")
            lines.append(f"{indent}return MCC_ERR_{item.status};")
        elif isinstance(item, RowRegion):
            lines += [*row_region(item, indent, _step), ""]
        else:
            lines += [*_step(item, indent), ""]
    return lines[:-1] if lines and not lines[-1] and indent != "    " else lines


def _measured(item: Measured, indent: str) -> list[str]:
    name, low, high = item.symbol.name, item.symbol.low, item.symbol.high
    place = _pointer(item.source.address, "int64_t", const=True)
    return [
        f"{indent}/* {comment(show(item.provenance))}: how many, from {low} to {high} */",
        f"{indent}if (*{place} < {low} || *{place} > {high}) return MCC_ERR_SIZE;",
        f"{indent}m->{name} = (mcc_index)*{place};",
        *(f"{indent}if ({_in_struct(dim)} < 0) return MCC_ERR_SIZE;" for dim in item.not_negative),
        f"{indent}@{name}@",
        "",
    ]


def _repeat(loop: Repeat, indent: str) -> list[str]:
    trips = f"{loop.trips} trips" if not isinstance(loop.trips, Argument) else "as many trips as an operand says"
    lines = [f"{indent}/* {comment(show(loop.provenance))}: {trips} */", f"{indent}{{"]
    inner = indent + "    "
    for swap in loop.swaps:
        if swap.now:
            for name, place in ((swap.now, swap.first), (swap.next, swap.second)):
                lines.append(f"{inner}uint8_t *{name} = {_pointer(place, 'uint8_t', const=False)};")
    limit = dim_c(loop.trips) if not isinstance(loop.trips, Argument) else ""
    if isinstance(loop.trips, Argument):
        limit = f"{loop.counter}_end"
        lines.append(f"{inner}const int64_t {limit} = *{_pointer(loop.trips.address, 'int64_t', const=True)};")
    test = f"{loop.counter} < {limit}"
    if loop.condition is not None:
        test += f" && *{_pointer(loop.condition.address, 'uint8_t', const=True)} != 0u"
    lines.append(f"{inner}for (mcc_index {loop.counter} = 0; {test}; ++{loop.counter}) {{")
    lines += _items(loop.items, inner + "    ")
    for swap in loop.swaps:
        if swap.now:
            lines.append(f"{inner}    SWAP({swap.now}, {swap.next});")
    lines.append(f"{inner}}}")
    lines += [f"{inner}{_settle(swap)}" for swap in loop.swaps if not swap.settled]
    return [*lines, f"{indent}}}"]


def _settle(swap: Swap) -> str:
    """Brings what a loop carried to its place."""
    place = _pointer(swap.last, "uint8_t", const=False)
    if not swap.now:
        return f"(void)memcpy({place}, {_pointer(swap.first, 'uint8_t', const=True)}, {swap.bytes});"
    copy = f"(void)memcpy({place}, {swap.now}, {swap.bytes});"
    elsewhere = swap.last not in (swap.first, swap.second)
    return copy if elsewhere else f"if ({swap.now} != {place}) {copy}"


def _step(step: Step, indent: str, more: tuple[str, ...] = ()) -> list[str]:
    return [f"{indent}{_comment(step)}", *(f"{indent}{call});" for call in _calls(step, more))]


def step_call(step: Step) -> str:
    """The last call that a step makes, up to its last parenthesis."""
    return _calls(step)[-1]


def _calls(step: Step, more: tuple[str, ...] = ()) -> list[str]:
    """One, or one for each phase; up to the last parenthesis."""
    if step.shared:
        phases = enumerate(step.shared.phases, step.shared.number)
        return [f"share(m, piece_of_{number}, {len(pieces)}" for number, pieces in phases]
    return [f"{step.function.name}({_arguments(step, more)}"]


def _pieces(step: Step, shared: Shared) -> Iterator[dict[str, object]]:
    """What the functions print that run one piece of a step, or of a phase of it."""
    for number, pieces in enumerate(shared.phases, shared.number):
        ends = (pieces[0][0], *(end for _, end in pieces))
        yield {
            "number": number,
            "comment": _comment(step),
            "ends": ", ".join(map(str, ends)),
            "count": len(ends),
            "call": f"{step.function.name}({_arguments(step, ('ends[piece]', 'ends[piece + 1]'))});",
        }


def _comment(step: Step) -> str:
    made = [a for a in step.arguments if a.written and a.role != "scratch"]
    used = [a for a in step.arguments if not a.written]
    types = f"{', '.join(str(a.type) for a in used)} -> {', '.join(str(a.type) for a in made)}".strip()
    where = "".join(f"; {base} {low}..{high}" for base, (low, high) in step.arena_ranges.items())
    return f"/* {comment(show(step.provenance))}: {step.op} {types}{where} */"


def _arguments(step: Step, more: tuple[str, ...]) -> str:
    arguments = [_argument(a) for a in step.arguments]
    if step.shared and step.shared.workspace:
        arguments[-1] += f" + piece * {step.shared.workspace}"
    table = [step.table.name] if step.table else []
    return ", ".join([*arguments, *table, *step.function.sizes, *more])


def _argument(argument: Argument) -> str:
    return _pointer(argument.address, argument.type.dtype.storage_c, const=not argument.written)


def _pointer(address: Address, c: str, const: bool) -> str:
    offset = dim_c(address.offset)
    if is_arena(address.base):
        return f"A{suffix_of(address.base)}({'const ' if const else ''}{c}, {offset})"
    if address.base == BLOB:
        return f"W({c}, {offset})"
    if address.base == STREAMS:
        return f"&m->streams[{static(address.offset) // 8}]"
    if address.base.startswith(outside("input", "")):
        return f"X({c}, m->{address.base}, {offset})"
    if is_outside(address):
        return f"P({'const ' if const else ''}{c}, m->{address.base}, {offset})"
    return f"P({'const ' if const else ''}{c}, {address.base}, {offset})"


def runtime_version(mcc_h: str) -> int:
    """What generated code has to be compiled with, read from the header itself."""
    found = re.search(r"#define MCC_RUNTIME_VERSION (\d+)", mcc_h)
    if found is None:
        raise ValueError("mcc.h defines no MCC_RUNTIME_VERSION")
    return int(found[1])
