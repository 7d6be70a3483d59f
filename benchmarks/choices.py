"""Which kernels are chosen, and were these the fastest? `python -m benchmarks.choices MODEL.onnx ...`

A model is timed step by step as it is compiled, and once more without each kernel that was chosen where there was
another: steps that had it get the next one then. For each such step: what the compiler thought both would take, and
what they took. The regret of a step is the time that the other kernel would have saved; that of a model is the sum of
these over the time of a run. Medians of steps that are too short to be timed well are not regret.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.networks import alone
from mccompile.base.provenance import show
from mccompile.driver import Options
from mccompile.emit.summary import table
from mccompile.measure.speed import Speed, speed
from mccompile.option_texts import dims, shape

SHORTEST = 1e-6  # seconds of a step that is timed well enough
CLEAR = 1.05  # how much faster another kernel must be to count

Key = tuple[str, tuple[str, ...]]  # kind of a step, and the nodes that it does


@dataclass(frozen=True)
class Timed:
    kernel: str
    measured: float  # seconds
    predicted: float  # cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="native")
    parser.add_argument("--dim", action="append", default=[], help="NAME=SIZE of a free dimension")
    parser.add_argument("--shape", action="append", default=[], help="INPUT=1,3,32,32")
    parser.add_argument("--realtime", action="store_true", help="give way to nobody else (as root, Linux)")
    given = parser.parse_args()
    options = Options(target=given.target, dims=dims(tuple(given.dim)), shapes=dict(map(shape, given.shape)))
    for model in given.models:
        with alone() if given.realtime else nullcontext():
            choices(model, options)


def choices(model: Path, options: Options) -> None:
    """Prints the steps that had a choice, those with the most regret first."""
    found = speed(model, options)
    best, total = timed(found), sum(seconds for _, seconds in found.steps)
    contested = {
        call.choice.candidates[0].kernel.id for call in found.package.explanations if len(call.choice.candidates) > 1
    }
    rows, lost = [], 0.0
    for kernel in sorted(contested & {one.kernel for one in best.values()}):
        others = timed(speed(model, replace(options, without=options.without | {kernel})))
        for key, one in best.items():
            other = others.get(key)
            if one.kernel != kernel or other is None or other.kernel == kernel:
                continue
            regret = one.measured - other.measured
            if one.measured < max(SHORTEST, CLEAR * other.measured):
                regret = 0.0
            lost += regret
            rows.append((regret, one.measured, kernel, other, key, one))
    print(f"{model}: {total * 1e6:.1f} us, regret {lost / total:.1%}", flush=True)
    lines = [
        [
            f"{regret / total:.1%}",
            *(text for each in (one, other) for text in (f"{each.predicted:.0f}", f"{each.measured * 1e6:.1f}")),
            kernel,
            other.kernel,
            show(names),
        ]
        for regret, _, kernel, other, (_, names), one in sorted(rows, key=lambda row: row[:2], reverse=True)
    ]
    titles = ["regret", "cycles", "us", "other: cycles", "us", "chosen", "other", "nodes"]
    print("\n".join(table(titles, lines, frozenset({5, 6, 7}))), flush=True)


def timed(found: Speed) -> dict[Key, Timed]:
    """The steps that do what no other step does; so the ones of two builds can be told to be the same."""
    predicted: dict[Key, float] = {}
    for call in found.package.explanations:
        key = (call.kind, tuple(call.provenance))
        predicted[key] = call.choice.candidates[0].cost.time
    steps: dict[Key, list[Timed]] = {}
    for step, seconds in found.steps:
        call_key = (step.function.call.kind.name, tuple(step.provenance))
        if call_key in predicted:
            one = Timed(step.function.kernel.id, seconds, predicted[call_key])
            steps.setdefault(call_key, []).append(one)
    return {key: several[0] for key, several in steps.items() if len(several) == 1}


if __name__ == "__main__":
    main()
