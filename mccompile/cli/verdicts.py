"""What a check has found, as text and as JSON.

Invariant: both say the same; where something is wrong, the text ends with an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_low
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..check.witnesses import RoundingEffect
    from ..measure.bitwise import BitComparison
    from ..measure.golden import Golden
    from ..measure.verdict import Run, Verdict


def as_dict(verdict: Verdict, golden: Golden | None = None) -> dict[str, Any]:
    first = verdict.first
    return {
        "ok": verdict.ok if golden is None else golden.ok,
        "model": verdict.package.plan.name,
        "target": verdict.package.plan.target,
        "outputs": [
            {
                "name": c.name,
                "max_abs": _number(c.max_abs),
                "max_rel": _number(c.max_rel),
                "mismatches": c.mismatches,
                "verdict": "ok" if c.ok else "near" if verdict.covers(c.name) else "wrong",
                "remark": verdict.remarks.get(c.name, ""),
            }
            for c in verdict.worst()
        ],
        "spreads": [
            {
                "output": spread.output,
                "sets": spread.sets,
                "unexplained": spread.unexplained,
                **{
                    name: {"mismatches": distance.mismatches, "excess": _number(distance.excess)}
                    for name, distance in (("found", spread.found), ("reference", spread.own))
                },
            }
            for spread in verdict.spreads
        ],
        "shaken": [
            {"output": e.output, "sets": e.sets, "moved": e.moved, "unexplained": e.unexplained, "hybrid": e.hybrid}
            for e in verdict.shaken
        ],
        "witnesses": [{"name": w.name, "agrees": w.agrees, "why": w.differs or w.silent} for w in verdict.witnesses],
        "effects": [
            {"cause": e.cause, "output": e.output, "share": _number(e.share), "ok": e.ok} for e in verdict.effects
        ],
        "runs": [_run(run) for run in verdict.runs],
        "left_out": [each.as_dict() for each in verdict.package.left_out],
        "first_difference": {"tensor": first.tensor, "nodes": list(first.nodes)} if first else None,
        **({"ticks": list(verdict.ticks)} if verdict.ticks else {}),
        **({} if golden is None else {"golden": _golden(golden)}),
    }


def _golden(golden: Golden) -> dict[str, Any]:
    changed = [line for problem in golden.problems for line in problem.why.splitlines()]
    return {"folder": str(golden.folder), "written": golden.written, "changed": changed}


def _run(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {"name": run.name, "reference": run.reference, "ok": run.ok}
    if run.in_doubles:
        found["float64"] = sorted(run.in_doubles)
    if run.backed:
        found["backed"] = dict(run.backed)
    if run.left_open:
        found["left_open"] = sorted(run.left_open)
    return found | ({"skipped": run.skipped} if run.skipped else {})


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if value < float("inf") else "inf"


def lines(verdict: Verdict, golden: Golden | None = None) -> Iterator[str]:
    for run in verdict.runs:
        if run.skipped:
            yield f"skip   {run.name}: the reference does not run it: {run.skipped.strip().splitlines()[-1]}"
        for output in run.outputs:
            figures = (
                output.why
                or f"max abs {output.max_abs:.3g}, max rel {output.max_rel:.3g}, {output.mismatches} mismatches"
            )
            word = "ok   " if output.ok else "near " if verdict.covers(output.name) else "WRONG"
            yield f"{word}  {run.name}: {output.name}: {figures} ({run.decided_by(output.name)})"
    for apart in verdict.spreads:
        ours, own = (
            f"{each.mismatches} mismatches, the worst {each.excess:.3g} times what is allowed"
            for each in (apart.found, apart.own)
        )
        labels = f"; {apart.unexplained} labels are not among those that it gives" if apart.unexplained else ""
        yield (
            f"{'near ' if verdict.covers(apart.output) else 'WRONG'}  {apart.output}: {ours}, "
            f"over {apart.sets} sets of inputs; rounding alone moves the reference by {own}{labels}"
        )
    yield from map(_shaken, verdict.shaken)
    yield from _witnesses(verdict)
    yield from (each.show() for each in verdict.package.left_out)
    for effect in verdict.effects:
        words = f"{effect.cause} move it by {effect.share:.2%} of its largest element"
        yield f"{'ok   ' if effect.ok else 'WRONG'}  {effect.output}: {words}"
    for name, remark in verdict.remarks.items():
        advice = "" if "not compared" in remark else "; this proves little, give real inputs with --data"
        yield f"note   {name}: {remark}{advice}"
    if any(verdict.ticks):
        yield f"board  {median_low(verdict.ticks)} ticks, the median of {len(verdict.ticks)} runs"
    if golden is not None and golden.written:
        yield f"wrote  {golden.folder}: outputs and hashes of files, to be compared with from now on"


def _witnesses(verdict: Verdict) -> Iterator[str]:
    agreeing = [each.name for each in verdict.witnesses if each.agrees]
    if agreeing:
        yield f"agree  {', '.join(agreeing)}"
    for each in verdict.witnesses:
        if each.differs:
            yield f"differ {each.name}: {each.differs}"
        elif each.silent:
            yield f"silent {each.name}: {each.silent}"


def _shaken(moved: RoundingEffect) -> str:
    word = "near " if moved.covers else "WRONG"
    if moved.covers and moved.hybrid:
        why = f"which may move it by {moved.hybrid:.1%} of the largest element"
        return f"{word}  {moved.output}: our judge agrees; LiteRT multiplies int8 weights with 8 bits of floats, {why}"
    rest = "with that, our judge agrees" if moved.covers else f"our judge differs in {moved.unexplained} others"
    ties = f"ties or chaos: rounding alone moves {moved.moved} elements in {moved.sets} sets of inputs"
    return f"{word}  {moved.output}: {ties}; {rest}"


def bits_as_dict(found: BitComparison) -> dict[str, Any]:
    return {
        "digest": found.digest,
        "sets": found.sets,
        "compiler": found.first.cc,
        "flags": list(found.first.flags),
        "builds": [
            {
                "compiler": build.way.cc,
                "flags": list(build.way.flags),
                "decided": build.decided,
                "equal": not build.apart,
                "outputs": [
                    {"name": e.output, "elements": e.elements, "differing": e.differing, "ulps": e.ulps}
                    for e in build.apart
                ],
            }
            for build in found.builds
        ],
    }


def lines_of_bits(found: BitComparison) -> Iterator[str]:
    equal = sum(not build.apart for build in found.builds)
    yield f"bits   {equal} of {len(found.builds)} other builds give those of `{found.first}`, {found.digest[:12]}"
    for build in found.builds:
        if build.apart:
            word = "WRONG" if build.decided else "other"
            why = "" if build.decided else " (contraction)"
            yield f"{word}  {build.way}: {'; '.join(map(str, build.apart))}{why}"


def lines_of_groups(model: str, groups: Sequence[Sequence[str]]) -> Iterator[str]:
    for group in groups:
        yield f"bits   {model}: " + (f"equal for {', '.join(group)}" if len(group) > 1 else f"{group[0]} has its own")
