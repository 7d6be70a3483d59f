"""Regions of an accelerator: what the passes are told of it, and the C that stands in for a region, which is compiled
as any model is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..accelerators.registry import accelerator
from ..base.dims import static
from ..base.scratch import Scratch
from ..emit.package import Package
from ..emit.runtime import include_line
from ..graph.ir import Graph, Value
from ..passes.api import Accelerated, StandIn
from ..plan.partition import Partition
from .options import Options

Compile = Callable[[Graph, Options, str], Package]


_ALIGN = 64  # bytes, that a blob may ask for
_MACROS = ("A", "W", "X", "P", "SWAP", "DUMP", "READY", "NOT_BEGUN")  # of a model's own file
_ROWS = re.compile(r"\brows_of_(?=\d)")  # functions of a model's own file


def accelerated(options: Options, prefix: str, compile_graph: Compile) -> Accelerated | None:
    """What passes are told of the accelerator that was asked for."""
    if not options.accelerator:
        return None
    plain = Options(target=options.target, prefer=options.prefer, single_file=True, winograd=options.winograd)

    def stand_in(graph: Graph, name: str) -> StandIn:
        package = compile_graph(graph, plain, f"{name}_c")
        return StandIn(_text(package, graph.inputs, graph.outputs, name), package.estimate.time)

    folder = Scratch()
    found = accelerator(options.accelerator)
    return Accelerated(found, prefix, folder, stand_in, Partition(found.name))


def _text(package: Package, inputs: Sequence[Value], outputs: Sequence[Value], name: str) -> str:
    """The files of the package as one, and the function that runs it."""
    prefix = package.plan.prefix
    macros = prefix.upper()
    header, code = (package.files[f"{prefix}.{ending}"].decode() for ending in "hc")
    code = _ROWS.sub(f"{prefix}_rows_of_", code)  # several regions, and the model, may be in one file
    copies_in = [_copied(f"{prefix}_input_in{n}(&m)", f"inputs[{n}]", value) for n, value in enumerate(inputs)]
    copies_out = [_copied(f"results[{n}]", f"{prefix}_output_out{n}(&m)", value) for n, value in enumerate(outputs)]
    return "\n".join(
        [
            f"/* {name}_stand_in.h: {name} in C, for where there is no accelerator. */",
            header,
            code.replace(f"{include_line(f'{prefix}.h')}\n", "", 1),
            *(f"#undef {macro}" for macro in _MACROS if f"#define {macro}" in code),
            f"static int {name}_stand_in(const void *const *inputs, void *const *results)",
            "{",
            f"    static uint8_t room[{macros}_ARENA_BYTES + {macros}_ARENA_ALIGN];",
            f"    uint8_t *const arena = room + {macros}_ARENA_ALIGN - (uintptr_t)room % {macros}_ARENA_ALIGN;",
            "#ifdef __TINYC__ /* aligns arrays to 8 bytes, whatever they ask for */",
            f"    static uint8_t copy[sizeof {prefix}_weights + {_ALIGN}];",
            f"    uint8_t *const blob = copy + {_ALIGN} - (uintptr_t)copy % {_ALIGN};",
            f"    (void)memcpy(blob, {prefix}_weights, sizeof {prefix}_weights);",
            "#else",
            f"    const void *const blob = {prefix}_weights;",
            "#endif",
            f"    const size_t bytes = {prefix}_weights_bytes;",
            f"    {prefix}_model m;",
            f"    if ({prefix}_init(&m, arena, {macros}_ARENA_BYTES, blob, bytes) != MCC_OK) return 1;",
            *copies_in,
            f"    if ({prefix}_run(&m) != MCC_OK) return 1;",
            *copies_out,
            "    return 0;",
            "}",
            "",
        ]
    )


def _copied(to: str, source: str, value: Value) -> str:
    return f"    (void)memcpy({to}, {source}, {static(value.type.max_bytes)}u);"
