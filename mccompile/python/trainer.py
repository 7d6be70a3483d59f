"""A network that learns as a Python object, compiled for this machine: the C that a device runs, here.

Invariant: nothing is computed here; losses and weights are those of the C.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..base.choice import chosen
from ..base.errors import BadFile, Problem, WrongUse
from ..base.scratch import Scratch
from ..driver import Options
from ..driver.training import train as train_file
from ..frontend.learned import write_learned
from ..measure.sparse_update import choose, refuse_samples
from ..passes.learn.batch_norm import BatchNorm
from ..passes.learn.integer_weights import LearnDtype
from ..passes.learn.losses import CLASSES
from ..passes.learn.optimizers import optimizer as optimizer_of
from ..passes.learn.phase_graphs import AUTO, Learning
from ..toolchain.build import find_compiler
from ..toolchain.host_library import build_shared
from ..toolchain.model_report import read_report
from ..toolchain.session import Session
from .called import made_by
from .compiled import in_folder, model_file
from .keywords import options_of
from .network import Outputs
from .spoken import spoken

_SUCH = {
    "loss": "cross_entropy:OUTPUT",
    "learn": "last:1",
    "optimizer": "adam,lr=0.001",
    "batch_norm": "frozen",
    "learn_dtype": "int8",
}
_CALLED = {
    "step(x, y) learns from a batch": ("learn", "fit", "train", "update", "train_step", "backward"),
    "run(x) infers with the learned weights": ("predict", "infer", "forward", "call", "eval"),
    "save(file) writes an ONNX file": ("export", "write", "state_dict", "to_onnx"),
}


@made_by("mccompile.train('net.onnx', loss='cross_entropy:OUTPUT')")
class Trainer:
    """`step` learns from a batch, `run` infers with the learned weights, `save` writes it into an ONNX file.

    It pickles, for other processes of this machine, with what was learned and what the optimizer keeps: its file must
    still be there, unless it came from memory, and hold the same."""

    def __init__(self, path: Path, asked: Learning, options: Options, cc: str | None, kept: Any = None) -> None:
        target = options.resolved_target()
        if target.run:
            fix = "leave out target, or use the command mccompile train"
            why = "batches are learned from here; a device learns with the C that the command writes"
            raise WrongUse(Problem(f"target {target.name} does not run on this machine", "target", why, fix))
        self._path, self._kept, self._asked, self._options, self._cc = path, kept, asked, options, cc
        self.rate = asked.optimizer.lr  # of the next steps
        self.losses: list[float] = []  # of all steps
        self._waiting = 0  # batches since the weights moved
        self._folder = Scratch()
        folder = Path(self._folder.name)
        train_file(path, asked, options).write(folder / "out")
        shared = folder / "model.so"
        compiler = find_compiler(cc or target.compiler)
        build_shared(folder / "out", read_report(folder / "out"), shared, compiler, target.cflags)
        self._session = Session(shared, folder / "out")
        self.input_names = [tensor.name for tensor in self._session.report.inputs]

    def __call__(self, *_arrays: Any, **_named: Any) -> NoReturn:
        """Whether a call learns or infers is said by its name."""
        why = "it learns and infers: which of both is said by its name"
        raise WrongUse(Problem("a network that learns cannot be called", self._path.name, why, "; ".join(_CALLED)))

    def __getattr__(self, name: str) -> Any:
        """What other packages call it: only names that are not here get to this."""
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        instead = next((own for own, others in _CALLED.items() if name in others), "")
        raise AttributeError(f"{told}: {instead}" if instead else told, name=name, obj=self)

    def __reduce__(self) -> tuple[Any, ...]:
        content = self._path.read_bytes() if self._kept is not None else None
        of = self._path.absolute(), content, self._asked, self._options, self._cc
        return _unpickled, (*of, self.report, self._session.saved(), self.rate, self.losses, self._waiting)

    def _go_on(self, report: Mapping[str, Any], saved: Any, rate: float, losses: list[float], waiting: int) -> None:
        """Takes the place of the network that was pickled."""
        if self.report != report:
            fix = "train it again with mccompile.train"
            raise BadFile(Problem(f"{self._path} has changed since its network was pickled", "", "", fix))
        self._session.restore(saved)
        self.rate, self.losses, self._waiting = rate, losses, waiting

    @property
    def report(self) -> dict[str, Any]:
        """What report.json says."""
        found: dict[str, Any] = json.loads(Path(self._folder.name, "out", "report.json").read_text(encoding="utf-8"))
        return found

    @property
    def loss(self) -> float:
        """Of the last batch."""
        return self.losses[-1] if self.losses else float("nan")

    @spoken
    def step(self, *arrays: Any, rate: float | None = None) -> float:
        """Learns from a batch: the model's inputs, and what the loss compares with. Weights move, or do so every
        `accumulate` batches. Gives the loss."""
        self._check_count("step", arrays, self.input_names)
        self._check_classes(np.asarray(arrays[-1]))
        rate = self.rate if rate is None else rate
        if not 0 <= rate < inf:
            why = "the weights move by this times the gradient"
            raise WrongUse(Problem(f"rate cannot be {rate}", "Trainer.step(rate=...)", why, "such as rate=0.01"))
        self.losses.append(self._session.learn(arrays, rate))
        self._waiting += 1
        if not self._asked.at_once and self._waiting >= self._asked.accumulate:
            self._session.step(rate)
            self._waiting = 0
        return self.loss

    def _check_count(self, call: str, arrays: tuple[Any, ...], names: Sequence[str]) -> None:
        if len(arrays) == len(names):
            return
        what, given = f"a {call} takes {len(names)} array{'' if len(names) == 1 else 's'}", ", ".join(names)
        raise WrongUse(Problem(what, self._path.name, f"it got {len(arrays)}", f"write {call}({given})"))

    def _check_classes(self, given: np.ndarray) -> None:
        """In C, where nothing is looked at twice, other classes are none."""
        kind, _, name = self._asked.loss.partition(":")
        if kind not in CLASSES:
            return
        shape = next(tensor.static_shape for tensor in self._session.report.outputs if tensor.name == name)
        count = shape[min(1, len(shape) - 1)]
        if given.dtype.kind not in "iubf":
            why, fix = f"the classes of {name} are 0 to {count - 1}, it got {given.dtype}", "give whole numbers"
            raise WrongUse(Problem("the target has no classes", self._path.name, why, fix))
        if given.size and not 0 <= given.min() <= given.max() < count:
            why = f"the classes of {name} are 0 to {count - 1}"
            what, fix = f"the target has classes {given.min()} to {given.max()}", "count them from 0, as in target - 1"
            raise WrongUse(Problem(what, self._path.name, why, fix))

    @spoken
    def run(self, *arrays: Any) -> Outputs:
        """The model's outputs, with what was learned."""
        outputs = [tensor.name for tensor in self._session.report.outputs]
        self._check_count("run", arrays, self.input_names[: len(self._session.report.phases[0].inputs)])
        return Outputs(outputs, self._session.run(arrays))

    @spoken
    def forget(self) -> None:
        """Back to the weights of the file."""
        self._session.reset()
        self.losses, self._waiting = [], 0

    def weights(self) -> Mapping[str, np.ndarray]:
        """What learns, as it is now, by its name in the file."""
        report, (_, _, state) = self._session.report, self._session.saved()
        found, begin = dict[str, np.ndarray](), 0
        for tensor in report.states:
            if tensor.name in self._asked_names:
                content = np.frombuffer(state, tensor.dtype.numpy, int(np.prod(tensor.static_shape)), begin)
                found[tensor.name] = content.reshape(tensor.static_shape).copy()
            begin += tensor.nbytes
        return found

    @property
    def _asked_names(self) -> frozenset[str]:
        return frozenset(self._session.report.initial)

    @spoken
    def save(self, path: str | Path) -> Path:
        """Writes the model with the weights as they are now as an ONNX file."""
        write_learned(self._path, self.weights(), Path(path), self._asked.learn_dtype == LearnDtype.INT8)
        return Path(path)


def _unpickled(
    path: Path, content: bytes | None, asked: Learning, options: Options, cc: str | None, *state: Any
) -> Trainer:
    kept = None
    if content is not None:
        path, kept = in_folder(content, path.name)
    trainer = Trainer(path, asked, options, cc, kept)
    trainer._go_on(*state)
    return trainer


@spoken
def train(
    model: Any,
    options: Options | None = None,
    /,
    *,
    loss: str,
    learn: str = "last:1",
    optimizer: str = "sgd",
    accumulate: int = 1,
    at_once: bool = False,
    clip: float | None = None,
    batch_norm: str = "frozen",
    learn_dtype: str = "f32",
    data: str | Path | None = None,
    cc: str | None = None,
    **keywords: Any,
) -> Trainer:
    """A model that learns: `net = mccompile.train("kws.onnx", loss="cross_entropy:scores"); net.step(x, y)`. The words
    are those of the command `mccompile train`; other keywords are those of `mccompile.compile`. `data`: samples
    (an .npz file) by which learn="auto" chooses what learns within budget={"ram": BYTES}."""
    words = {"loss": loss, "learn": learn, "optimizer": optimizer, "batch_norm": batch_norm, "learn_dtype": learn_dtype}
    for name, word in words.items():
        if not isinstance(word, str):
            why = f"it is text, as `mccompile train` takes it, not of the type {type(word).__name__}"
            raise WrongUse(Problem(f"{name} cannot be {word!r}", name, why, f"such as {name}={_SUCH[name]!r}"))
    given = options_of(options, keywords)
    if options is None and "target" not in keywords:
        given = replace(given, target="native")
    path, kept = model_file(model)
    statistics = chosen(BatchNorm, batch_norm, "there is no batch_norm {!r}", "batch_norm")
    dtype = chosen(LearnDtype, learn_dtype, "there is no learn_dtype {!r}", "learn_dtype")
    asked = Learning(loss, learn, optimizer_of(optimizer), at_once, clip, accumulate, statistics, learn_dtype=dtype)
    samples = None if data is None else Path(data)
    refuse_samples(asked, samples)
    if asked.learn == AUTO:
        asked = choose(path, asked, given, samples, cc).asked
    return Trainer(path, asked, given, cc, kept)
