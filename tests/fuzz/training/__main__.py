"""The fuzzer of programs that learn: `python -m tests.fuzz.training --seed 1 --count 300`.

Random networks, losses, layers and optimizers are compiled by `mccompile train`, built for this machine with sanitizers
or for emulated ones, and called a few times. Losses and outputs are compared with the judge's in float64 at the weights
that the program has then, gradients with central differences, steps with optimizers in numpy. Status 1: some are wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from mccompile.base.errors import STRICT, MccError
from mccompile.driver import Options
from mccompile.driver.training import _REFUSED, train
from mccompile.judge.rules import NoWitness
from mccompile.toolchain.model_report import read_report
from tests.fuzz import machines, options, report, subject, trial

from .lessons import Lesson, draw
from .programs import Died, Told, run
from .reference import Arrays, Optimizer, Place, Reference

OK, NEAR, REFUSED, UNKNOWN, WRONG, CRASH = "ok", "near", "refused", "unknown", "wrong", "crash"
GOOD = (OK, NEAR, REFUSED, UNKNOWN)
PLACES = 8  # whose gradients are compared, per batch
MOVED = 3  # times that a reference is moved by a millionth, where it seems to be off
APART = ("mem", "blob", "tuned", "threads", "io_layout", "dims", "bounds", "weights_section", "single_file")


def main() -> int:
    os.environ[STRICT] = "1"
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.training", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="end after so many, whatever the time")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--targets", default="", help="only these, with commas between")
    given = parser.parse_args()
    counts, refusals, start, number = Counter[str](), Counter[str](), time.monotonic(), given.first
    there = machines.available(tuple(filter(None, given.targets.split(","))))
    there = tuple(m for m in there if not machines.Build(m, "", ()).is_bare)
    while (not given.count or number < given.first + given.count) and time.monotonic() - start < given.seconds:
        kind, detail = verdict(given.seed, number, there)
        counts[kind] += 1
        if kind == REFUSED:
            refusals[detail[:110]] += 1
        if kind not in GOOD:
            print(f"==== {kind}: --seed {given.seed} --first {number} --count 1\n{detail}", flush=True)
        number += 1
    said = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    print(f"{counts.total()} programs that learn, seed {given.seed}, {time.monotonic() - start:.0f} s: {said}")
    for reason, n in refusals.most_common(8):
        print(f"  refused {n}: {reason}")
    return int(any(counts[kind] for kind in counts if kind not in GOOD))


def verdict(seed: int, number: int, there: Sequence[machines.Machine]) -> tuple[str, str]:
    """Of one program, with what there is to say of it."""
    lesson, chance = draw(seed, number), np.random.default_rng([seed, number, 12])
    shares = np.array([machine.weight for machine in there])
    machine = there[int(chance.choice(len(there), p=shares / shares.sum()))]
    chosen = _options(chance, lesson, machine)
    build = machines.draw(machine, chance)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as name:
        file, folder = Path(name, "net.onnx"), Path(name, "out")
        onnx.save(lesson.model, file)
        try:
            judged = Reference(lesson)
            with trial.limited(trial.COMPILE_SECONDS):
                train(file, lesson.asked, chosen).write(folder)
            told = run(lesson, folder, read_report(folder), build)
            kind, detail = compared(judged, told, chance)
        except NoWitness as why:
            return UNKNOWN, str(why)
        except MccError as error:
            return REFUSED, re.sub(r"\b[vxcqs]\d+\b", "_", " ".join(str(error).split()))
        except Died as died:
            kind, detail = died.kind, str(died)
        except Exception:
            kind, detail = CRASH, traceback.format_exc(limit=-6)
    flags = " ".join([build.compiler, *build.flags])
    asked = f"{lesson.asked}\nbuild: {flags}\noptions: {options.shown(chosen)}"
    return kind, f"{detail}\n{asked}\n{report.as_text(lesson.model)}" if kind not in GOOD else detail


def _options(chance: np.random.Generator, lesson: Lesson, machine: machines.Machine) -> Options:
    """Those that learning has, as the fuzzer draws them."""
    drawn, plain = options.draw(chance, subject.Subject(lesson.model, ()), machine), Options()
    left = {field: getattr(plain, field) for field in (*_REFUSED, *APART)}
    return replace(drawn, **left, name="net")


def compared(judged: Reference, told: Told, chance: np.random.Generator) -> tuple[str, str]:
    """`ok` or `near` (off by no more than a reference that is moved by a millionth), or what is wrong."""
    if any(told.weights[0][name].tobytes() != told.weights[-1][name].tobytes() for name in told.weights[0]):
        return WRONG, "forget gives other weights than the file has"
    if not all(np.isfinite(array).all() for weights in told.weights for array in weights.values()):
        return UNKNOWN, "weights are not finite"
    lesson = judged.lesson
    steps, near, since = Optimizer(lesson), 0, 0
    for number in range(len(lesson.batches)):
        since = 1 if lesson.asked.at_once else since + 1
        for what, mine, wanted in _seen(judged, told, number, since, chance):
            right = wanted(None)
            off = abs(mine - right)
            if not off <= 1e-4 * max(1e-2, abs(mine)):
                most = max(abs(wanted(chance) - right) for _ in range(MOVED))
                if not off <= 30 * most:
                    return WRONG, f"{what} of batch {number} is {mine:.8g}, not {right:.8g}, which moves by {most:.3g}"
                near += 1
        if lesson.asked.at_once or since < lesson.asked.accumulate:
            continue
        for name, array in steps.step(told.weights[number], told.sums[number], since).items():
            got = told.weights[number + 1][name]
            if not np.allclose(got, array, rtol=1e-5, atol=1e-7):
                return WRONG, f"step {number} makes {name} {got.tolist()}, not {array.tolist()}"
        since = 0
    return (NEAR, "") if near else (OK, "")


Wanted = Callable[[np.random.Generator | None], float]  # moved a little, or as it is


def _seen(
    judged: Reference, told: Told, number: int, since: int, chance: np.random.Generator
) -> Iterator[tuple[str, float, Wanted]]:
    """What a batch leads to, and what it should: the loss, some elements of what comes out, and of gradients."""
    lesson = judged.lesson
    before, after = told.weights[number], told.weights[number + 1]
    batches = lesson.batches[number + 1 - since : number + 1]
    yield (
        "the loss",
        told.losses[number],
        lambda shake: judged.loss(_shaken(before, shake), _shaken(batches[-1], shake)),
    )
    for at in _places(told.outputs[number], chance):
        yield (
            f"{lesson.output}{list(at)}",
            float(told.outputs[number][at]),
            lambda shake, at=at: float(judged.output(_shaken(after, shake), _shaken(batches[-1], shake))[at]),
        )
    averages = judged.averages(before, batches[-1])
    for name, at in [(name, at) for name, array in averages.items() for at in _places(array, chance)]:
        yield (
            f"the average {name}{list(at)}",
            float(after[name][at]),
            lambda shake, name=name, at=at: float(judged.averages(before, _shaken(batches[-1], shake))[name][at]),
        )
    places = [(name, at) for name, w in before.items() if name not in averages for at in _places(w, chance)]
    for number_of in chance.permutation(len(places))[:PLACES]:
        place = name, at = places[number_of]
        if judged.slope(before, batches, place) is None:
            continue
        if lesson.asked.at_once:
            if abs(before[name][at]) > 2:  # a step loses too many digits
                continue
            mine = (float(before[name][at]) - float(after[name][at])) / lesson.optimizer.lr
        else:
            mine = float(told.sums[number][name][at])

        def slope(shake: np.random.Generator | None, place: Place = place) -> float:
            found = judged.slope(_shaken(before, shake), [_shaken(batch, shake) for batch in batches], place)
            return np.inf if found is None else found

        yield f"the gradient of {name}{list(at)}", mine, slope


def _places(array: np.ndarray, chance: np.random.Generator) -> list[tuple[int, ...]]:
    flat = chance.permutation(array.size)[:PLACES]
    return [tuple(int(n) for n in np.unravel_index(place, array.shape)) for place in flat]


def _shaken(arrays: Arrays, chance: np.random.Generator | None) -> Arrays:
    """Floats, moved by a millionth."""
    if chance is None:
        return arrays
    return {
        name: array * (1 + 1e-6 * chance.normal(size=array.shape)) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }


if __name__ == "__main__":
    sys.exit(main())
