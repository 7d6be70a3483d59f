"""Prints a plan: functions, constants and steps with their addresses."""

from __future__ import annotations

from ..base.provenance import show as show_provenance
from ..base.text import branches
from .copies import Awaited, Copied
from .ir import Address, Argument, Branch, Halt, Item, Measured, Plan, Repeat, RowRegion, Step


def show(plan: Plan) -> str:
    arenas = ", ".join(f"{arena.base} {arena.bytes} (bound {arena.bound})" for arena in plan.arenas)
    sizes = f"{arenas}, blob {plan.data_bytes}"
    lines = [f"plan {plan.name!r} for {plan.target}: {sizes} {{"]
    lines += [f"  input {t.name!r}: {t.type} at {_address(t.address)}" for t in plan.inputs]
    lines += [
        f"  const {e.name}: {e.contents.type} at {e.offset} #{e.contents.digest} {e.packing}".rstrip()
        for e in plan.entries
    ]
    lines += [f"  function {f.name} from {f.kernel.id}" for f in plan.functions]
    lines += _items(plan.items, "  ")
    lines += [f"  output {t.name!r}: {t.type} at {_address(t.address)}" for t in plan.outputs]
    return "\n".join([*lines, "}"]) + "\n"


def _items(items: tuple[Item, ...], indent: str) -> list[str]:
    lines: list[str] = []
    for item in items:
        if isinstance(item, Branch):
            then, otherwise = (_items(items, indent + "  ") for items in (item.then, item.otherwise))
            condition = "outputs are read" if item.condition is None else _address(item.condition.address)
            lines += branches(condition, then, otherwise, indent)
        elif isinstance(item, Repeat):
            trips = _address(item.trips.address) if isinstance(item.trips, Argument) else item.trips
            line = f"{indent}repeat {item.counter} up to {trips}"
            if item.condition is not None:
                line += f" while {_address(item.condition.address)}"
            for swap in item.swaps:
                line += f" swap {swap.now} {_address(swap.first)} with {swap.next} {_address(swap.second)}"
                line += f" last {_address(swap.last)}"
            lines += [f"{line} {{", *_items(item.items, indent + "  "), f"{indent}}}"]
        elif isinstance(item, Measured):
            lines.append(f"{indent}measure {item.symbol} {_address(item.source.address)}")
        elif isinstance(item, Halt):
            lines.append(f"{indent}halt: {item.why}")
        elif isinstance(item, Copied):
            lines.append(f"{indent}copy {item.bytes} from blob+{item.source} to {item.base}+{item.offset}")
        elif isinstance(item, Awaited):
            lines.append(f"{indent}await {item.copy.base}+{item.copy.offset}")
        elif isinstance(item, RowRegion):
            lines.append(f"{indent}rows {{")
            for stage in item.stages:
                pulls = "".join(f" pull {pull}" for pull in stage.pulls)
                lines.append(f"{indent}  {stage.height} by {stage.step}{pulls}: {_step(stage.run)}")
            lines.append(f"{indent}}}")
        else:
            lines.append(indent + _step(item))
    return lines


def _step(step: Step) -> str:
    arguments = ", ".join(f"{a.role}={_address(a.address)}:{a.type}" for a in step.arguments)
    return f"{step.function.name}({arguments}) from {show_provenance(step.provenance)}"


def _address(address: Address) -> str:
    return f"{address.base}+{address.offset}"
