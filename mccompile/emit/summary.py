"""A plan as text for the terminal: a few lines after compiling, and the tables and the memory map of `mccompile
analyze`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.provenance import show
from ..passes.api import Explanation
from ..plan.ir import Arena, Plan
from ..plan.lives import Life
from .row_costs import costs_of_rows, weights_of
from .traffic import traffic, transfers

_BAR = 48  # characters for the whole arena


def summary(plan: Plan, weights_bytes: int) -> str:
    """What a compiled model costs."""
    over = plan.arena_bytes - plan.arena_bound
    steps = list(plan.steps())
    reached = "the lower bound" if over == 0 else f"{over} above the lower bound"
    return "\n".join(
        [
            *([f"flags    {' '.join(plan.build.flags)}"] if plan.build.flags else []),
            f"arena    {plan.arena_bytes} bytes ({reached}; {plan.arena_naive} without sharing)",
            *memories(plan),
            *_outside(plan),
            *_fetched(plan),
            f"weights  {weights_bytes} bytes",
            *_window(plan),
            f"macs     {sum(step.macs for step in steps)}",
            f"steps    {len(steps)}, calling {len(plan.functions)} distinct kernels",
            *(f"tiles   {tiles}" for tiles in plan.column_tiles),
            *_stream(plan),
            *(plan.partition.lines() if plan.partition else []),
            *_rows(plan),
            *_rounding(plan),
            *_threads(plan),
            *(step.show() for step in plan.portable),
        ]
    )


def memories(plan: Plan) -> list[str]:
    """How much each holds, and what is copied to and from it."""
    lines, moved = list[str](), transfers(plan)
    for arena in (arena for arena in plan.arenas if arena.pool):
        line = f"  {arena.pool:<7}{arena.bytes} bytes" + (f" of {arena.limit}" if arena.limit is not None else "")
        if arena.pool in moved:
            each = moved[arena.pool]
            line += f"; a run reads {each['read_bytes']} bytes there and writes {each['written_bytes']}"
            if (bound := each.get("traffic_bound_bytes")) is not None:
                above = each["traffic_bytes"] - bound
                line += f", {above} above the lower bound" if above else ", the lower bound"
            line += f", {early} of these while steps run" if (early := each["overlapped_bytes"]) else ""
            line += f", in {each['copies']} copies and {each['traffic_us']} us" if "traffic_us" in each else ""
            line += f", {each['waited_us']} of them without a step at work" if "waited_us" in each else ""
        lines.append(line)
    return lines


def _outside(plan: Plan) -> list[str]:
    """What the arena does not hold."""
    tensors = [t for t in (*plan.inputs, *plan.outputs) if t.is_outside and t.rows is None]
    parts = ", ".join(f"{t.name} {t.room}" for t in tensors)
    return [f"external {sum(t.room for t in tensors)} bytes, where pointers say ({parts})"] if tensors else []


def _fetched(plan: Plan) -> list[str]:
    """Of inputs that the program gives row by row, how many rows the arena holds."""
    lines = []
    for tensor in (t for t in plan.inputs if t.rows):
        held = next(
            made.high - made.low
            for made, given in (step.arguments[:2] for step in plan.steps() if step.function.kernel.asks)
            if given.address.base == tensor.address.base
        )
        assert tensor.rows is not None
        some = f"{held // tensor.rows.bytes} of its {tensor.rows.count} rows lie in the arena"
        whole = "all of it lies in the arena: what reads it does not run row by row"
        lines.append(f"fetched  {tensor.name}: {some if held < tensor.room else whole}")
    return lines


def _window(plan: Plan) -> list[str]:
    """What copying the weights takes."""
    found = traffic(plan)
    if found is None:
        return []
    line = f"window   {found['read_bytes']} bytes of weights are copied per run, in {found['copies']} pieces of up to "
    line += f"{found['largest_bytes']} bytes; {found['overlapped_bytes']} of them while steps run"
    return [line]


def _stream(plan: Plan) -> list[str]:
    """What a push takes, and when a result is there."""
    found = plan.streamed
    if found is None:
        return []
    latencies = sorted({output.latency for output in found.outputs})
    late = f", {' or '.join(map(str, latencies))} frames late" if latencies[-1:] > [0] else ""
    line = f"stream   {found.hop} of {found.window} frames a push, results from push {found.warm_up} on{late}"
    whole = f"         all of the window is read in every push by {', '.join(found.whole)}"
    on = f"         {', '.join(found.carried)} goes on from push to push"
    return [line, *([whole] if found.whole else []), *([on] if found.carried else [])]


def _rows(plan: Plan) -> list[str]:
    """What running row by row saves and costs."""
    costs = costs_of_rows(plan)
    chains = Counter(
        f"rows     {cost.steps} layers fused line by line ({cost.height} row{'s' * (cost.height > 1)} per pass, "
        f"{cost.calls} kernel calls); their {cost.weights} bytes of weights are read "
        f"{cost.read / max(cost.weights, 1):.1f} times per run"
        for cost in costs
    )
    lines = [line + (f" ({count} such chains)" if count > 1 else "") for line, count in chains.items()]
    return lines + [f"         {plan.arena_by_calls - plan.arena_bytes} bytes of RAM less than layer by layer"] * (
        bool(costs) and not plan.has_pools and not plan.window
    )


def _rounding(plan: Plan) -> list[str]:
    """Steps that compute with fewer bits than the model has, because they may."""
    count = sum(step.function.kernel.rounds for step in plan.steps())
    what = f"{count} step{'s round' if count > 1 else ' rounds'} activations to int8"
    return [f"rounding {what} (--block-activations float: none)"] if count else []


def _threads(plan: Plan) -> list[str]:
    """What workers share."""
    if not plan.parallel:
        return []
    workers = [step.shared.workers for step in plan.steps() if step.shared]
    if not workers:
        return [f"threads  no step takes long enough to be shared: {plan.prefix}_set_parallel changes nothing"]
    return [f"threads  {len(workers)} steps are shared, each by up to {max(workers)} workers"]


def analysis(plan: Plan, weights_bytes: int, report: Mapping[str, Any]) -> str:
    """Everything there is to say of it; `report` is what report.json holds, or `analysis_of`, with what was measured of
    steps."""
    steps = _steps(plan, report["steps"])
    parts = [summary(plan, weights_bytes), "", *_tensors(plan), "", *steps, "", *_memory_map(plan)]
    if plan.at_peak:
        parts += ["", f"peak RAM is held by: {', '.join(plan.at_peak)}"]
    parts += ["", *_passes(report), "", *_groups(plan), "", *_moves(report)]
    return "\n".join(parts)


def explanation(explanations: Sequence[Explanation]) -> str:
    """Per call the kernels that could serve it, best first, with their costs; and why others could not."""
    lines: list[str] = []
    for item in explanations:
        lines += ["", f"{item.kind}: {show(item.provenance)}"]
        rows = [
            [
                f"  {'->' if number == 0 else '  '} {candidate.kernel.stem}",
                f"{candidate.cost.time:.0f}" + "*" * candidate.cost.measured,
                str(candidate.cost.code),
                str(candidate.cost.blob),
                str(candidate.needs.scratch),
            ]
            for number, candidate in enumerate(item.choice.candidates)
        ]
        lines += table(["     kernel", "cycles", "code", "more weights", "workspace"], rows, frozenset({0}))
        lines += [f"     {stem}: no, {reason}" for stem, reason in item.choice.refusals]
    if any(c.cost.measured for item in explanations for c in item.choice.candidates):
        lines += ["", "* as measured"]
    return "\n".join(lines[1:])


def tuned_line(explanations: Sequence[Explanation], stale: int = 0) -> str:
    """How many choices were made by measurement, and how many measurements nobody believes."""
    among = [item for item in explanations if len(item.choice.candidates) > 1]
    text = f"tuned    {sum(item.by_measurement for item in among)} of {len(among)} choices made by measurement"
    return text + (f"; {stale} measurements of other versions of kernels are left out" if stale else "")


def _passes(report: Mapping[str, Any]) -> list[str]:
    """What each pass did to the number of nodes, of moves among them, and to the bytes between nodes."""
    columns = ("nodes", "moves", "bytes")
    rows = [
        [step["name"], *(_change(step[f"{column}_before"], step[f"{column}_after"]) for column in columns)]
        for step in report["passes"]
    ]
    return table(["pass", "nodes", "transposes, copies", "bytes between nodes"], rows, frozenset({0}))


def _change(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _groups(plan: Plan) -> list[str]:
    """Nodes that became one step."""
    fused = [(number, step) for number, step in enumerate(plan.steps()) if len(step.provenance) > 1]
    lines = [f"{len(fused)} steps do the work of several nodes"]
    return lines + [f"  step {number}: {' + '.join(step.provenance)}" for number, step in fused]


def _moves(report: Mapping[str, Any]) -> list[str]:
    """Transposes and copies that cost time."""
    moves = report["moves"]
    lines = [f"{len(moves) or 'no'} transposes or copies are left"]
    return lines + [f"  {move['name']}: {move['bytes']} bytes; {move['reason']}" for move in moves]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: frozenset[int] = frozenset()) -> list[str]:
    """Columns as wide as they have to be, flush right but for those in `left`."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = (
            cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return lines


def _tensors(plan: Plan) -> list[str]:
    lines = []
    for word, tensors in (("input", plan.inputs), ("output", plan.outputs)):
        for t in tensors:
            place = (
                f"in {t.rows.count} rows along axis {t.rows.axis}"
                if t.rows
                else f"at {t.address.base} {t.address.offset}"
            )
            lines.append(f"{word:<7}  {t.name}: {t.type} {place}")
    return lines


def _steps(plan: Plan, said: Sequence[Mapping[str, Any]]) -> list[str]:
    units = [unit for unit in ("us", "ticks", "instructions") if any(f"measured_{unit}" in each for each in said)]
    rows = []
    for number, step in enumerate(plan.steps()):
        pools = {arena.base: f"{arena.pool} " if arena.pool else "" for arena in plan.arenas}
        spans = (f"{pools[base]}{low}..{high}" for base, (low, high) in step.arena_ranges.items())
        span = ", ".join(spans) or "-"
        made = ", ".join(str(a.type) for a in step.arguments if a.written and a.role != "scratch")
        weights = sum(a.high - a.low for a in weights_of(step))
        kernel = step.function.kernel.id
        took = [f"{said[number][f'measured_{unit}']:{'.1f' if unit == 'us' else ''}}" for unit in units]
        name = show(step.provenance, 2) or step.op
        rows.append([str(number), name, kernel, made, str(step.macs), str(weights), span, *took])
    head = ["step", "node", "kernel", "result", "macs", "weights", "arena", *units]
    return table(head, rows, frozenset({1, 2, 3}))


def _memory_map(plan: Plan) -> list[str]:
    """One line per buffer, in the order in which they come to life; the bar shows its place in the arena. A map for
    each pool."""
    maps = [_map_of(plan, arena) for arena in plan.arenas]
    return maps[0] + [line for lines in maps[1:] for line in ["", *lines]]


def _map_of(plan: Plan, arena: Arena) -> list[str]:
    lives = sorted((life for life in plan.lives if life.base == arena.base), key=lambda life: (life.start, life.low))
    rows = [
        [_times(life), str(life.high - life.low), str(life.low), f"|{_bar(arena, life)}|", life.name] for life in lives
    ]
    what = f" {arena.pool or 'arena'} of {arena.bytes} bytes"
    return table(["alive", "bytes", "at", what.ljust(_BAR + 2), "buffer"], rows, frozenset({3, 4}))


def _times(life: Life) -> str:
    times = [life.start, *(time for idle in life.idle for time in idle), life.end]
    return ", ".join(f"{start}..{end - 1}" for start, end in zip(times[::2], times[1::2], strict=True))


def _bar(arena: Arena, life: Life) -> str:
    size = max(arena.bytes, 1)
    begin = min(life.low * _BAR // size, _BAR - 1)
    end = max(-(-life.high * _BAR // size), begin + 1) if life.high > life.low else begin
    return " " * begin + "#" * (end - begin) + " " * (_BAR - end)
