"""What the programs of the folder `board` are told of a model: macros by which they call it."""

from __future__ import annotations

from math import prod

from mccompile.base.dtypes import string

from .host_model import learning_macros
from .model_report import Report, Tensor


def _entry(tensor: Tensor, count: str) -> str:
    """`count`: in C, of elements, where the shape is not fixed."""
    if tensor.is_static:
        count = f"{prod(tensor.static_shape)}u"
    if tensor.dtype is string:
        return f"MCC_HOST_STRINGS({tensor.symbol}, {count})"
    nbytes = f"{tensor.nbytes}u" if tensor.is_static else f"((size_t){count} * {tensor.dtype.bits}u + 7u) / 8u"
    return f"MCC_HOST_EACH({tensor.symbol}, {nbytes})"


def _not_fixed(report: Report) -> list[str]:
    """Sizes that come with inputs, shapes that are known after a run, the state, and whether it runs for that alone."""
    lines = []
    if not all(tensor.is_static for tensor in (*report.inputs, *report.outputs)):
        shapes = " ".join(f"SHAPE({t.symbol}, {len(t.shape)})" for t in report.outputs if not t.is_static)
        lines.append(f"#define MCC_HOST_SHAPES(SHAPE) {shapes}")
    if report.given:
        sizes = ", ".join(f"(mcc_index)(n)[{number}]" for number in range(len(report.given)))
        lines.append(f"#define MCC_HOST_GIVEN {len(report.given)}")
        lines.append(f"#define MCC_HOST_RESIZE(m, n) {report.prefix}_resize(m, {sizes})")
    if report.state_bytes:
        lines.append(f"#define MCC_HOST_STATE_BYTES {report.state_bytes}u")
    return lines + (["#define MCC_HOST_ADVANCES"] if report.advances else [])


def _placed(report: Report) -> list[str]:
    """Memory for what lies outside the arena, and accessors as of what lies inside."""
    lines, calls = [], []
    for way, tensors in (("input", report.inputs), ("output", report.outputs)):
        for tensor in (t for t in tensors if t.room):
            name, c = f"{way}_{tensor.symbol}", tensor.dtype.storage_c
            lines.append(f"static MCC_ALIGNED({max(tensor.align, 8)}) uint8_t outside_{name}[{tensor.room}];")
            lines.append(f"#define {report.prefix}_{name}(m) ((void)(m), ({c} *)(void *)outside_{name})")
            given = f"({c} *)(void *)outside_{name}"
            if tensor.rows:
                fields = f"outside_{name}, {tensor.rows.bytes}u, {tensor.rows.count}, 0"
                lines.append(f"static mcc_array_rows rows_{name} = {{{fields}}};")
                given = f"mcc_fetch_array, &rows_{name}"
            calls.append(f"{report.prefix}_set_{name}(m, {given})")
    return [*lines, f"#define MCC_HOST_PLACE(m) {' | '.join(calls) or 'MCC_OK'}"]


def _arenas(report: Report) -> list[str]:
    """One piece of memory for all arenas, one after the other, each at a multiple of what it asks for."""
    names = [
        f"{report.prefix.upper()}_ARENA{f'_{arena.pool.upper()}' if arena.pool else ''}" for arena in report.arenas
    ]
    align, at, arguments = max(arena.align for arena in report.arenas), "0u", []
    for name in names:
        arguments.append(f"(a) + ({at}), {name}_BYTES")
        at = f"{at} + ({name}_BYTES + {align - 1}u) / {align}u * {align}u" if len(names) > 1 else f"{name}_BYTES"
    return [
        f"#define MCC_HOST_ARENA_BYTES ({at})",
        f"#define MCC_HOST_ARENA_ALIGN {align}u",
        f"#define MCC_HOST_INIT(m, a, w, s) {report.prefix}_init(m, {', '.join(arguments)}, w, s)",
    ]


def board_header(report: Report, dump: bool) -> str:
    """What board/run_model.c and board/learn_model.c know of the model."""
    lists = []
    for word, tensors in (("INPUTS", report.inputs), ("OUTPUTS", report.outputs)):
        count = "count_of_next(file)" if word == "INPUTS" else "count_{}(file, m)"
        each = " ".join(_entry(tensor, count.format(tensor.symbol)) for tensor in tensors)
        lists.append(f"#define MCC_HOST_{word}(MCC_HOST_EACH, MCC_HOST_STRINGS) {each}")
    strings = [tensor.nbytes // 16 for tensor in (*report.inputs, *report.outputs) if tensor.dtype is string]
    if strings:
        lists.append(f"#define MCC_HOST_TEXT_BYTES {256 + 16 * sum(strings)}u")
    return "\n".join(
        [
            f'#include "{report.prefix}.h"',
            f"#define MCC_HOST_PREFIX {report.prefix}",
            *_arenas(report),
            *lists,
            *_placed(report),
            *_not_fixed(report),
            *_learning(report),
            *(["#define MCC_HOST_DUMP"] if dump else []),
            "",
        ]
    )


def _learning(report: Report) -> list[str]:
    """The calls that learn, and what a run is given then."""
    if not report.learns:
        return []
    given = [tensor for tensor in report.inputs if tensor.name in report.phases[0].inputs]
    each = " ".join(_entry(tensor, "") for tensor in given)
    return [learning_macros(report), f"#define MCC_HOST_RUN_INPUTS(MCC_HOST_EACH, MCC_HOST_STRINGS) {each}"]
