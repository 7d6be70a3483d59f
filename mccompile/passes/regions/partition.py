"""Which regions an accelerator computes: of the largest regions that it supports, those that pay.

A region pays where the accelerator's cycles and those of turning and copying what goes in and out are fewer than the
core's, as its kernels estimate them. Neither side counts how long constants take to arrive: the core would read them
from the same memory. A region for which a memory or a window for weights is too small is cut into smaller ones.
"""

from __future__ import annotations

from pathlib import Path

from ...accelerators.api import Built, No, Region, Unit, Without
from ...base.dims import static
from ...base.records import dataclass
from ...graph.ir import Graph, Value
from ...memory.interval import align_up
from ...ops.quantize import DequantizeLinear
from ...plan.partition import HostUnit, TakenRegion
from ..api import Accelerated, Context, Memory, StandIn
from ..memory.constants import BLOB_ALIGN
from .convex import convex_regions
from .keep_stored import keep_stored
from .replace_region import graph_of, replace_region
from .units import units_of


@dataclass(frozen=True)
class _TooLarge(No):
    """Smaller regions may fit."""


def partition(graph: Graph, asked: Accelerated, context: Context) -> None:
    keep_stored(graph)
    units, memory = units_of(graph), context.memory
    refused = {unit: why for unit in units if (why := _why_not(unit, asked, memory))}
    accepted = {unit for unit in units if unit not in refused}
    waiting = convex_regions(units, accepted)
    while waiting:
        group = waiting.pop(0)
        refusal = _cut(graph, group, asked, context)
        if isinstance(refusal, _TooLarge) and len(group) > 1:
            half = len(group) // 2  # in an order in which they can run: both parts are convex
            waiting += [each for part in (group[:half], group[half:]) for each in convex_regions(units, set(part))]
        elif refusal is not None:
            out = refusal.units if isinstance(refusal, Without) else group
            refused |= dict.fromkeys(out, refusal.reason)
            waiting += convex_regions(units, set(group).difference(out))
    left = [HostUnit(unit.provenance, str(unit), refused[unit]) for unit in units if unit in refused and not unit.moves]
    asked.partition.left[:] = left
    graph.sort()


def _why_not(unit: Unit, asked: Accelerated, memory: Memory) -> str:
    for value in (value for node in unit.nodes for value in (*node.present_inputs, *node.present_outputs)):
        if not value.type.is_static:
            return f"the size of {value.name!r} is known only at run time"
    if any(node.regions for node in unit.nodes):
        return "it has a body of its own"
    answer = asked.accelerator.takes(unit) or _too_large(Region("", (unit,), (*unit.reads,), (*unit.makes,)), memory)
    return answer.reason if isinstance(answer, No) else ""


def _too_large(region: Region, memory: Memory, built: Built | None = None) -> _TooLarge | None:
    """Do its operands, results and workspace not fit the memory that steps work in, or its constants the window?"""
    align, sizes = built.align if built else 1, [static(v.type.max_bytes) for v in (*region.inputs, *region.results)]
    near = sum(align_up(size, align) for size in (*sizes, built.workspace if built else 0))
    if memory.copied and memory.near is not None and near > memory.near:
        return _TooLarge(f"it needs {near} bytes of the memory that steps work in, which has {memory.near}")
    brought = sum(align_up(array.nbytes, BLOB_ALIGN) for array in built.constants) if built else 0
    if memory.window and brought > memory.window:
        return _TooLarge(f"it reads {brought} bytes of constants, and the window for weights has {memory.window}")
    return None


def _cut(graph: Graph, group: tuple[Unit, ...], asked: Accelerated, context: Context) -> No | None:
    """Gives a region away; or why not."""
    region = region_of(graph, group, f"{asked.prefix}_region{len(asked.partition.taken)}")
    if all(unit.moves for unit in group):
        return No("the result is empty")
    built = asked.accelerator.build(region)
    if isinstance(built, No):
        return built if isinstance(built, Without) else _failing(graph, group, asked, built)
    too_large = _too_large(region, context.memory, built)
    if too_large is not None:
        return too_large
    stand_in = asked.stand_in(graph_of(region, built), region.name)
    moved = _moved(region, built) * context.target.machine.vector_element
    busy = built.cycles - built.waits
    core = stand_in.cycles
    if busy + moved >= core:
        there = f"{busy:.0f} cycles there and {moved:.0f} to hand over what goes in and out"
        return No(f"it is slower: {there}, {core:.0f} on the core")
    rounded = graph_of(region, built)
    if asked.accelerator.round_there(rounded):
        stand_in = asked.stand_in(rounded, region.name)
    _write(region, built, stand_in, asked)
    replace_region(graph, region, built, asked)
    constants = sum(array.nbytes for array in built.constants)
    asked.partition.taken.append(
        TakenRegion(
            region.name,
            region.provenance,
            sum(not unit.moves for unit in group),
            built.cycles,
            built.waits,
            core,
            built.workspace,
            constants,
        )
    )
    return None


def _failing(graph: Graph, group: tuple[Unit, ...], asked: Accelerated, refusal: No) -> No:
    """What is refused as a whole is built in halves, to find the units that are refused by themselves."""
    if len(group) == 1:
        return Without(refusal.reason, group)
    half, found = len(group) // 2, list[Without]()
    for part in (group[:half], group[half:]):
        built = asked.accelerator.build(region_of(graph, part, f"{asked.prefix}_part"))
        if isinstance(built, No):
            inner = built if isinstance(built, Without) else _failing(graph, part, asked, built)
            found += [inner] if isinstance(inner, Without) else []
    if not found:
        return refusal
    return Without(found[0].reason, tuple(unit for each in found for unit in each.units))


def region_of(graph: Graph, group: tuple[Unit, ...], name: str) -> Region:
    inside = {node for unit in group for node in unit.nodes}
    made = [value for unit in group for value in unit.makes]
    inputs = dict.fromkeys(value for unit in group for value in unit.reads if value not in set(made))

    def is_read_outside(value: Value) -> bool:
        """Also through a DequantizeLinear that units inside and outside read."""
        readers = [reader for reader, _ in value.uses]
        reals = [
            real for reader in readers if isinstance(reader.op, DequantizeLinear) for real in reader.present_outputs
        ]
        return graph.is_output(value) or not inside.issuperset(readers) or any(map(is_read_outside, reals))

    results = [value for value in made if is_read_outside(value)]
    return Region(name, group, tuple(inputs), tuple(results))


def _moved(region: Region, built: Built) -> int:
    """Elements that are needed in another order. Mostly a neighbour stores or reads them so, and they count little."""
    turned = [v for v in (*region.inputs, *region.results) if _turns(v, built)]
    return sum(static(value.type.count) for value in turned)


def _turns(value: Value, built: Built) -> bool:
    """Do axes longer than 1 come in another order?"""
    order = built.orders.get(value, tuple(range(value.type.rank)))
    long = [axis for axis in order if value.type.shape[axis] != 1]
    return long != sorted(long)


def _write(region: Region, built: Built, stand_in: StandIn, asked: Accelerated) -> None:
    """The header with the function, and beside it the one with its stand-in."""
    guard = f"{region.name.upper()}_H"
    lines = [
        f"/* {region.name}.h: what {asked.accelerator.name} computes; where MCC_STAND_IN is defined, the core does. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "mcc_external.h"',
        "",
        "#ifdef MCC_STAND_IN",
        f'#include "{region.name}_stand_in.h"',
        "#endif",
        "",
        built.code.strip("\n"),
        "",
        "#endif",
    ]
    path = Path(asked.folder.name, f"{region.name}.h")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.with_name(f"{region.name}_stand_in.h").write_text(stand_in.text, encoding="utf-8")
