"""What a check of on-device training (losses, gradients and steps of the optimizer) has found, as text and as JSON.

Invariant: both say the same; where something is wrong, the text ends with an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..measure.learning import TrainingCheck

_BESIDE = {"gradients": "central differences in float64", "steps": "the optimizer in float64"}
_WORST = ("wrong", "near", "ok")


def _verdict(found: TrainingCheck, kind: str) -> str:
    return min((each.verdict for each in found.of(kind)), key=_WORST.index)


def as_dict(found: TrainingCheck) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "model": found.package.plan.name,
        "target": found.package.plan.target,
        "batches": found.batches,
        "learning": [
            {
                "what": kind,
                "compared": len(found.of(kind)),
                "max_rel": max(each.rel for each in found.of(kind)),
                "verdict": _verdict(found, kind),
                "wrong": [str(each) for each in found.of(kind) if each.verdict == "wrong"],
            }
            for kind in found.kinds
        ],
        "bent": found.bent,
        "left_out": [each.as_dict() for each in found.package.left_out],
    }


def lines(found: TrainingCheck) -> Iterator[str]:
    for kind in found.kinds:
        word = {"ok": "ok   ", "near": "near ", "wrong": "WRONG"}[_verdict(found, kind)]
        count, off = len(found.of(kind)), max(each.rel for each in found.of(kind))
        beside = _BESIDE.get(kind, "float64")
        yield f"{word}  {kind}: {count} of {found.batches} batches, max rel {off:.3g} beside {beside}"
    if "gradients" not in found.kinds:
        yield "note   gradients: none is compared; give real inputs with --data, or more of them with --runs"
    elif found.bent:
        yield f"note   gradients: along {found.bent} other directions the loss bends, and has no slope"
    yield from (each.show() for each in found.package.left_out)
