"""Steps that are computed by portable C although the target has better instructions, and why; for the summary and the
report.

Only those that are expected to take more than `LEAST` of a run: the others are not worth a line.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dtypes import SHORT
from ...base.portable import PortableStep
from ...kernels.registry import PORTABLE
from ...kinds.external import External
from ...program.ir import Call, Program
from ...targets.api import Target
from ..api import Context, Explanation
from .estimate import runs_of, taken

LEAST = 0.05  # of a run
MOST = 5  # steps that are named, the longest first
REASONS = 2  # of one step


def portable_steps(program: Program, context: Context) -> tuple[PortableStep, ...]:
    explained = {
        (item.provenance, item.choice.candidates[0].kernel.id): item
        for item in context.explanations
        if item.choice.candidates
    }
    runs = [(run, taken(run, context)) for run in runs_of(program.body)]
    total = sum(time for _, time in runs)
    found = []
    for run, time in runs:
        call, item = run.call, explained.get((run.call.provenance, run.call.kernel))
        kernel = context.registry[call.kernel]
        portable = kernel.isa == PORTABLE and not kernel.vectorizes(call, context.target)
        if not portable or time <= LEAST * total or not _has_better(call, context.target):
            continue
        why = _reasons(item) if item is not None else ()
        found.append(PortableStep(call.provenance, call.kernel, time / total, why))
    found.sort(key=lambda step: -step.share)
    return tuple(found[:MOST])


def _has_better(call: Call, target: Target) -> bool:
    """Has the target instructions for such elements? None has some for text or for functions of
    others; those without vectors of floats have some for short integers."""
    dtypes = {view.buffer.dtype for view in (*call.ins, *call.outs)}
    if isinstance(call.kind, External) or any(dtype.kind == "string" for dtype in dtypes):
        return False
    return "vec" in target.isas or (not dtypes.isdisjoint(SHORT) and any(isa != PORTABLE for isa in target.isas))


def _reasons(item: Explanation) -> Sequence[str]:
    """What the other kernels say to the call, or that they would take longer; equal reasons once."""
    others = [c.kernel.stem for c in item.choice.candidates if c.kernel.isa != PORTABLE]
    slower = [f"{stem} is expected to take longer" for stem in others[:1]]
    said = [reason for stem, reason in item.choice.refusals if not stem.endswith(f"__{PORTABLE}")]
    reasons = [*slower, *dict.fromkeys(said)] or [f"{item.kind} has no other kernel"]
    return tuple(reasons[:REASONS])
