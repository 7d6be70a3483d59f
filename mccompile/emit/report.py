"""report.json: what was compiled, what it costs, and what each pass and step is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.structures import Interface
from ..passes.api import Record
from ..passes.planning.moves_left import Move
from ..plan.constants import Entry
from ..plan.ir import Arena, Plan, Step
from .building import in_report as of_build
from .inside import in_report
from .interface import seen
from .row_costs import costs_of_rows
from .traffic import traffic, transfers


def report(
    plan: Plan,
    weights_bytes: int,
    passes: Sequence[Record],
    moves: Sequence[Move],
    version: str,
    left_in_float: Mapping[str, str],
    interface: Interface | None = None,
    about_code: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`about_code`: its identity, and the options that it was made with."""
    pools, moved = {arena.base: arena.pool for arena in plan.arenas}, traffic(plan)
    copied = transfers(plan)
    return {
        "mccompile": version,
        "model": plan.name,
        "prefix": plan.prefix,
        **of_build(plan.build),
        **(about_code or {}),
        "threads": max((step.shared.workers for step in plan.steps() if step.shared), default=1),
        "macs": sum(step.macs for step in plan.steps()),
        "arena_bytes": plan.arena_bytes,
        "arena_align": plan.arena_align,
        **({"pools": [_pool(arena) | copied.get(arena.pool, {}) for arena in plan.arenas]} if plan.has_pools else {}),
        "external_bytes": sum(t.room for t in (*plan.inputs, *plan.outputs) if t.rows is None),
        "arena_bound_bytes": plan.arena_bound,
        "arena_naive_bytes": plan.arena_naive,
        "arena_call_by_call_bytes": plan.arena_by_calls,
        "rows": [row_cost.to_json() for row_cost in costs_of_rows(plan)],
        "weights_bytes": weights_bytes,
        **({"weights_window": moved} if moved is not None else {}),
        **seen(plan, interface),
        **({"accelerator": plan.partition.in_report()} if plan.partition else {}),
        "steps": [
            {
                "name": " + ".join(step.provenance),
                "op": step.op,
                "kernel": step.function.kernel.id,
                "function": step.function.name,
                "macs": step.macs,
                **({"rounds": True} if step.function.kernel.rounds else {}),
                **_ranges(plan, step),
                **_weights(step),
                **in_report(plan, step),
            }
            for step in plan.steps()
        ],
        **({"profiled": True} if plan.profiled else {}),
        **({"unseen": [{"name": name, "why": why} for name, why in plan.unseen]} if plan.dumped else {}),
        "passes": [_pass(record) for record in passes],
        "moves": [{"name": " + ".join(m.provenance), "bytes": m.bytes, "reason": m.reason} for m in moves],
        "at_peak": list(plan.at_peak),
        "buffers": [
            {"name": life.name, "start": life.start, "end": life.end, "low": life.low, "high": life.high}
            | ({"pool": pools[life.base]} if plan.has_pools else {})
            | ({"at_peak": True} if life.at_peak else {})
            | ({"idle": [list(times) for times in life.idle]} if life.idle else {})
            for life in plan.lives
        ],
        **({} if plan.lists_constants else {"constants": [_constant(entry) for entry in plan.entries]}),
        "portable": [step.as_dict() for step in plan.portable],
        "facts_used": list(plan.assumptions),
        "float_in_quantized": [{"node": node, "why": why} for node, why in left_in_float.items()],
    }


def _pool(arena: Arena) -> dict[str, Any]:
    limit = {} if arena.limit is None else {"limit_bytes": arena.limit}
    sizes = {"bytes": arena.bytes, "align": arena.align, "bound_bytes": arena.bound}
    return {"name": arena.pool, **sizes, **limit}


def _ranges(plan: Plan, step: Step) -> dict[str, Any]:
    """The bytes that a step touches, of the arena or of the arenas in pools."""
    ranges = {base: list(span) for base, span in step.arena_ranges.items()}
    if not plan.has_pools:
        return {"arena_range": next(iter(ranges.values()), None)}
    return {"arena_ranges": {arena.pool: ranges[arena.base] for arena in plan.arenas if arena.base in ranges}}


def _weights(step: Step) -> dict[str, Any]:
    """The bytes of the blob's data that a step reads."""
    spans = sorted({(a.low, a.high) for a in step.arguments if a.address.base == "blob"})
    return {"weights_ranges": [list(span) for span in spans]} if spans else {}


def _constant(entry: Entry) -> dict[str, Any]:
    type = entry.contents.type
    return {"name": entry.name, "type": str(type), "offset": entry.offset, "bytes": type.max_bytes}


def _pass(record: Record) -> dict[str, Any]:
    before, after = record.before, record.after
    return {
        "name": record.name,
        "nodes_before": before.nodes,
        "nodes_after": after.nodes,
        "moves_before": before.moves,
        "moves_after": after.moves,
        "bytes_before": before.bytes,
        "bytes_after": after.bytes,
    }
