"""Does a compiled model learn what it should? Builds it for its target, has it learn from a few batches, and compares
every loss, output, average, gradient and step with float64 (check/training_comparison.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..base.errors import CheckFailed, Problem, WrongUse
from ..base.records import dataclass
from ..base.stages import stage
from ..check.learning import Reference
from ..check.training_comparison import KINDS, Finding, TrainingComparison
from ..check.witnesses import MOST_OF_JUDGE
from ..driver import Options
from ..driver.training import read_learner, train
from ..emit.package import Package
from ..frontend.load import STANDARD_INPUT
from ..frontend.original import Original
from ..judge.rules import NoWitness
from ..passes.learn.integer_weights import LearnDtype
from ..passes.learn.losses import TARGET
from ..passes.learn.phase_graphs import AUTO, Learning
from ..toolchain.learning import TrainingRecord, learned
from ..toolchain.model_report import Report, Tensor
from .building import build, input_sets
from .sparse_update import choose, taking

PLACES, SINGLES = 8, 8  # elements of each tensor, and of all gradients together, that are looked at
SOME_OF_JUDGE = 10 * MOST_OF_JUDGE  # products of a batch, above which one direction has to do


@dataclass(frozen=True)
class TrainingCheck:
    """What a check of learning has found."""

    package: Package
    batches: int
    findings: tuple[Finding, ...]
    bent: int  # directions along which a loss has no slope

    @property
    def ok(self) -> bool:
        return not any(each.verdict == "wrong" for each in self.findings)

    def of(self, kind: str) -> list[Finding]:
        return [each for each in self.findings if each.kind == kind]

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in KINDS if self.of(kind)]

    def failure(self, model: Path) -> CheckFailed:
        wrong = [each for each in self.findings if each.verdict == "wrong"]
        first = next(each for kind in KINDS for each in wrong if each.kind == kind)
        fix = "please report it; -O0 may be right"
        return CheckFailed(Problem(f"{model} learns wrong", f"{first.kind}: {len(wrong)} wrong", str(first), fix))


@stage("check")
def check_learning(
    path: Path,
    asked: Learning,
    options: Options,
    data: Path | None = None,
    seed: int = 0,
    batches: int = 3,
    rtol: float = 1e-3,
    cc: str | None = None,
) -> TrainingCheck:
    """Has a model learn from samples, or random inputs, towards their targets, or random ones."""
    asked = _seen(path, asked)
    if asked.learn == AUTO:
        asked = choose(path, asked, options, data, cc).asked
    package = train(path, asked, options)
    model = build(package, options.resolved_target(), cc)
    graph = read_learner(path, options)
    sets = input_sets(taking(model.report) if _has_targets(data) else graph, data, seed, batches)
    given = [_batch(each.inputs, model.report, asked, [seed, number]) for number, each in enumerate(sets[:batches])]
    told = learned(model, given, asked.optimizer.lr, asked.accumulate)
    _must_forget(told)
    try:
        comparison = TrainingComparison(Reference(Original(path, options.reading).judged(), asked), given, told, [seed])
        singles = min(SINGLES, SOME_OF_JUDGE // max(1, package.macs))
        findings = tuple(comparison.findings(rtol, PLACES, singles))
    except NoWitness as why:
        fix = f"compare with PyTorch: net = mccompile.train({str(path)!r}, ...)"
        raise CheckFailed(Problem("check has no reference for what it learns", str(path), str(why), fix)) from None
    return TrainingCheck(package, len(given), findings, comparison.bent)


def _seen(path: Path, asked: Learning) -> Learning:
    """Gradients that are used at once are seen by what they make of the weights."""
    if path == STANDARD_INPUT:
        fix = "save the model as a file, and check that"
        raise WrongUse(Problem("the reference reads the model from a file", "-", "standard input is none", fix))
    if not asked.at_once:
        return asked
    if asked.learn_dtype == LearnDtype.INT8:
        why = "gradients are applied where they are computed, and integers do not show them"
        fix = "leave out --at-once: gradients and steps are the same then"
        raise WrongUse(Problem("this step does not show its gradients", "--at-once", why, fix))
    if asked.optimizer.name != "sgd" or asked.optimizer.weight_decay:
        why = "gradients are applied where they are computed, and only plain sgd shows them"
        fix = "leave out --at-once: gradients and steps are the same then"
        raise WrongUse(Problem("this step does not show its gradients", "--at-once", why, fix))
    return replace(asked, optimizer=replace(asked.optimizer, lr=1.0))


def _has_targets(data: Path | None) -> bool:
    if data is None or data.suffix != ".npz" or not data.is_file():
        return False
    try:
        with np.load(data) as stored:
            return TARGET in stored.files
    except (OSError, ValueError, BadZipFile):
        return False  # reading the samples says what is wrong


def _batch(inputs: dict[str, np.ndarray], report: Report, asked: Learning, seed: Sequence[int]) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    target = next((t for t in report.inputs if t.name == TARGET and t.name not in inputs), None)
    return inputs if target is None else {**inputs, TARGET: _target(target, report, asked, chance)}


def _target(target: Tensor, report: Report, asked: Learning, chance: np.random.Generator) -> np.ndarray:
    """Classes where they are whole numbers, probabilities where these are asked for."""
    kind, _, name = asked.loss.partition(":")
    shape = target.static_shape
    if target.dtype.is_integer:
        output = next(tensor.static_shape for tensor in report.outputs if tensor.name == name)
        return chance.integers(0, output[min(1, len(output) - 1)], shape).astype(target.dtype.numpy)
    drawn = chance.random(prod(shape)) if kind == "bce" else chance.standard_normal(prod(shape))
    return drawn.reshape(shape).astype(target.dtype.numpy)


def _must_forget(told: TrainingRecord) -> None:
    kept = [name for name in told.weights[0] if told.weights[0][name].tobytes() != told.weights[-1][name].tobytes()]
    if kept:
        raise CheckFailed(Problem("it does not forget what it learned", kept[0], "", "please report it"))
