"""What a check has found, as text and as JSON.

Invariant: both say the same; where something is wrong, the text ends with an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        "effects": [
            {"cause": e.cause, "output": e.output, "share": _number(e.share), "ok": e.ok} for e in verdict.effects
        ],
        "runs": [_run(run) for run in verdict.runs],
        "first_difference": {"tensor": first.tensor, "nodes": list(first.nodes)} if first else None,
        **({} if golden is None else {"golden": _golden(golden)}),
    }


def _golden(golden: Golden) -> dict[str, Any]:
    changed = [line for problem in golden.problems for line in problem.why.splitlines()]
    return {"folder": str(golden.folder), "written": golden.written, "changed": changed}


def _run(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {"name": run.name, "reference": run.reference, "ok": run.ok}
    if run.in_doubles:
        found["float64"] = sorted(run.in_doubles)
    if run.evaluated:
        found["evaluated"] = sorted(run.evaluated)
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
        labels = f"; {apart.unexplained} labels are none of those that it gives" if apart.unexplained else ""
        yield (
            f"{'near ' if apart.covers else 'WRONG'}  {apart.output}: {ours}, over {apart.sets} sets of inputs; "
            f"rounding alone moves the reference by {own}{labels}"
        )
    for effect in verdict.effects:
        words = f"{effect.cause} move it by {effect.share:.2%} of its largest element"
        yield f"{'ok   ' if effect.ok else 'WRONG'}  {effect.output}: {words}"
    for name, remark in verdict.remarks.items():
        advice = "" if "not compared" in remark else "; this proves little, give real inputs with --data"
        yield f"note   {name}: {remark}{advice}"
    if golden is not None and golden.written:
        yield f"wrote  {golden.folder}: outputs and hashes of files, to be compared with from now on"
