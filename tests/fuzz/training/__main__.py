"""The fuzzer of programs that learn: `python -m tests.fuzz.training --seed 1 --count 300`.

Random networks (a tenth of them quantized), losses, layers and optimizers are compiled by `mccompile train`, built by
tcc, with sanitizers or for emulated machines, and called a few times. Losses and outputs are compared with the judge's
in float64 at the weights that the program has then, gradients with central differences, steps with optimizers in numpy.
Status 1: some are wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from onnx import numpy_helper

from mccompile.base.errors import STRICT, MccError, WrongUse
from mccompile.check.learning import Arrays, Reference
from mccompile.check.training_comparison import TrainingComparison
from mccompile.driver import Options
from mccompile.driver.training import _REFUSED, train
from mccompile.frontend.judged import judged as judge_graph
from mccompile.judge.rules import NoWitness
from mccompile.measure.sparse_update import choose
from mccompile.memory import order, push_down
from mccompile.passes.learn.phase_graphs import AUTO
from mccompile.passes.program import bufferize
from mccompile.toolchain.learning import TrainingRecord
from mccompile.toolchain.model_report import read_report
from mccompile.update import learned_model
from tests.fuzz import machines, options, report, subject, trial

from .drawn import Drawn, draw
from .programs import SAVED, Died, run

OK, NEAR, REFUSED, UNKNOWN, WRONG, CRASH = "ok", "near", "refused", "unknown", "wrong", "crash"
GOOD = (OK, NEAR, REFUSED, UNKNOWN)
PLACES = 8  # whose gradients are compared, per batch
RTOL = 1e-4
QUICK = 0.75  # of programs, for portable C built by tcc where that is there: a tenth of the time
SEARCHES = (
    (bufferize, "EFFORT"),
    (order, "EXACT_WORK"),
    (order, "BEAM_WORK"),
    (push_down, "START_WORK"),
    (push_down, "REPAIR_WORK"),
)
AUTO_SHARE = 0.03  # of programs, whose weights samples choose: so many plans are made for it
COMES_BACK = 4  # every such program's slots are read back into its model
SHORTER = 100  # times: searches for small arenas find others then, and what is checked is the same
APART = ("blob", "tuned", "io_layout", "dims", "bounds", "weights_section", "single_file")


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
    drawn, chance = draw(seed, number), np.random.default_rng([seed, number, 12])
    build = _build(chance, there)
    chosen = _options(chance, drawn, build.machine)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as name:
        file, folder = Path(name, "net.onnx"), Path(name, "out")
        onnx.save(drawn.model, file)
        try:
            with trial.limited(trial.COMPILE_SECONDS), shorter_searches():
                if chance.random() < AUTO_SHARE:
                    drawn, chosen = chosen_by_samples(file, drawn, chosen, chance)
                train(file, drawn.asked, chosen).write(folder)
            judged = Reference(judge_graph(drawn.model), drawn.asked)
            told = run(drawn, folder, read_report(folder), build)
            kind, detail = compared(judged, drawn.batches, told, chance)
            if kind in GOOD and number % COMES_BACK == 0:
                kind, detail = come_back(file, folder, told) or (kind, detail)
        except NoWitness as why:
            return UNKNOWN, str(why)
        except MccError as error:
            return REFUSED, re.sub(r"\b[vxcqs]\d+\b", "_", " ".join(str(error).split()))
        except Died as died:
            kind, detail = died.kind, str(died)
        except Exception:
            kind, detail = CRASH, traceback.format_exc(limit=-6)
    flags = " ".join([build.compiler, *build.flags])
    asked = f"{drawn.asked}\nbuild: {flags}\noptions: {options.shown(chosen)}"
    return kind, f"{detail}\n{asked}\n{report.as_text(drawn.model)}" if kind not in GOOD else detail


def _build(chance: np.random.Generator, there: Sequence[machines.Machine]) -> machines.Build:
    quick = [m for m in there if "tcc" in m.compilers] if shutil.which("tcc") and chance.random() < QUICK else []
    if quick:
        return machines.draw(replace(quick[0], compilers=("tcc",)), chance)
    shares = np.array([machine.weight for machine in there])
    return machines.draw(there[int(chance.choice(len(there), p=shares / shares.sum()))], chance)


@contextmanager
def shorter_searches() -> Iterator[None]:
    with ExitStack() as stack:
        for module, name in SEARCHES:
            stack.enter_context(mock.patch.object(module, name, getattr(module, name) // SHORTER))
        yield


def _options(chance: np.random.Generator, drawn: Drawn, machine: machines.Machine) -> Options:
    """Those that learning has, as the fuzzer draws them."""
    chosen, plain = options.draw(chance, subject.Subject(drawn.model, ()), machine), Options()
    left = {field: getattr(plain, field) for field in (*_REFUSED, *APART)}
    budget = {what: most for what, most in chosen.budget.items() if what in ("ram", "weights")}
    if any(pool.copied for pool in chosen.mem):
        left["mem"] = plain.mem
    return replace(chosen, **{**left, "budget": budget}, name="net")


def chosen_by_samples(file: Path, drawn: Drawn, chosen: Options, chance: np.random.Generator) -> tuple[Drawn, Options]:
    """What `--learn auto` makes of it, within a part of what all layers take."""
    samples = file.with_name("samples.npz")
    np.savez(samples, **{name: np.stack([batch[name] for batch in drawn.batches]) for name in drawn.batches[0]})
    everything = train(file, replace(drawn.asked, learn="all"), replace(chosen, budget={}, mem=()))
    ram = everything.plan.arena_bytes
    chosen = replace(chosen, budget={"ram": int(ram * chance.uniform(0.6, 1.1))}, mem=(), prefer=None)
    asked = choose(file, replace(drawn.asked, learn=AUTO), chosen, samples).asked
    return replace(drawn, asked=asked), chosen


def compared(
    judged: Reference, batches: Sequence[Arrays], told: TrainingRecord, chance: np.random.Generator
) -> tuple[str, str]:
    """`ok` or `near` (off by no more than a reference that is moved by a millionth), or what is wrong."""
    if any(told.weights[0][name].tobytes() != told.weights[-1][name].tobytes() for name in told.weights[0]):
        return WRONG, "forget gives other weights than the file has"
    if not all(np.isfinite(array).all() for weights in told.weights for array in weights.values()):
        return UNKNOWN, "weights are not finite"
    comparison = TrainingComparison(judged, batches, told, [int(chance.integers(1 << 30))])
    near = 0
    for found in comparison.findings(RTOL, PLACES, PLACES):
        if found.verdict == WRONG:
            return WRONG, str(found)
        near += found.verdict == NEAR
    return (NEAR, "") if near else (OK, "")


def come_back(model: Path, folder: Path, told: TrainingRecord) -> tuple[str, str] | None:
    """What is wrong with the weights that the program saved, once they are back in the model."""
    to = folder / "learned.onnx"
    try:
        with shorter_searches():
            learned_model(model, folder, "", False, folder / SAVED, to)
    except WrongUse as error:
        return REFUSED, " ".join(str(error).split())
    except MccError as error:
        return WRONG, f"what was saved does not come back: {error}"
    graph = onnx.load(to).graph
    found = {tensor.name: tensor for tensor in graph.initializer}
    found |= {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    off = [
        name
        for name, array in told.weights[-2].items()
        if numpy_helper.to_array(found[name]).astype(array.dtype).tobytes() != array.tobytes()
    ]
    return (WRONG, f"{', '.join(off)} came back otherwise than saved") if off else None


if __name__ == "__main__":
    sys.exit(main())
