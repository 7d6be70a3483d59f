"""What a run of the fuzzer says: figures by verdict, target, free sizes and states, and each failure as text that can
be pasted into a test."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, TensorProto, parser, printer

from mccompile.driver import Options

from .options import is_vector, shown
from .trial import BAD, REFUSED, VERDICTS, Trial, Verdict


@dataclass
class Figures:
    verdicts: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    options: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    moving: int = 0
    vectors: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, one: Outcome) -> None:
        self.verdicts[one.verdict.kind] += 1
        self.targets[one.options.target] += 1
        ran = one.verdict.kind != REFUSED
        self.vectors += ran and is_vector(one.options)
        self.notes.update(one.verdict.notes)
        self.moving += one.free or one.state
        self.notes["free sizes"] += one.free
        self.notes["states"] += one.state
        self.operators.update(one.operators)
        if not ran:
            self.refusals[_reason(one.verdict.detail)] += 1
        if one.verdict.kind in BAD:
            self.failures.append(one.text)

    def lines(self, seed: int, first: int, last: int, seconds: float) -> list[str]:
        count = sum(self.verdicts.values())
        ran = count - self.verdicts[REFUSED]
        found = [
            f"{count} programs, seed {seed}, subjects {first} to {last}, {seconds:.0f} s "
            f"({count / max(seconds, 1e-9):.1f} per second)",
            "  " + ", ".join(f"{self.verdicts[kind]} {kind}" for kind in VERDICTS),
            f"  {self.notes['tensors early'] / max(ran, 1):.1%} had copies on their way while steps ran",
            f"  with free sizes or states {self.moving}, on vector targets {self.vectors}",
            "  targets: " + ", ".join(f"{name} {n}" for name, n in sorted(self.targets.items())),
            "  notes: " + ", ".join(f"{name} {n}" for name, n in sorted(self.notes.items())),
            f"  operators: {len(self.operators)} kinds",
        ]
        return found + [f"  refused {n}: {reason}" for reason, n in self.refusals.most_common(12)]


@dataclass(frozen=True)
class Outcome:
    """What becomes of one program, small enough to go from process to process."""

    number: int
    variant: int
    verdict: Verdict
    options: Options
    operators: tuple[str, ...]
    free: bool
    state: bool
    text: str = ""

    @staticmethod
    def of(trial: Trial, text: str = "") -> Outcome:
        assert trial.verdict is not None
        return Outcome(
            trial.number,
            trial.variant,
            trial.verdict,
            trial.options,
            tuple(sorted(trial.subject.operators)),
            bool(trial.subject.free),
            bool(trial.subject.state),
            text,
        )


def _reason(text: str) -> str:
    """What is alike of a refusal."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    why = next((line.strip() for line in text.splitlines() if line.strip().startswith("why")), "")
    return re.sub(r"\b[vxcqs]\d+\b", "_", f"{first} | {why}")[:150]


def text(trial: Trial) -> str:
    """A failure for people and for tests."""
    assert trial.verdict is not None
    subject = trial.subject
    lines = [
        f"==== {trial.verdict.kind}: --seed {trial.seed} --subject {trial.number} (variant {trial.variant})",
        trial.verdict.detail,
        f"build: {trial.build.compiler} {' '.join(trial.build.flags)}",
        f"options: {shown(trial.options)}",
    ]
    if trial.together:
        lines.append("compiled into one folder with the others of its batch")
    if trial.way:
        lines.append(f"written and built by {trial.way}: --target {trial.asked}")
    if trial.renewed is not None:
        lines.append("run with the blob of other weights: `subject.trained_anew`")
    if trial.strays is not None:
        lines.append(f"strays: {trial.strays.kind} values{' in a weight' * trial.strays.in_weights}, {_strewn(trial)}")
    if subject.free:
        lines.append(f"sizes: {dict(subject.free)}")
    return "\n".join([*lines, as_text(subject.model)])


def _strewn(trial: Trial) -> str:
    """What a program is given, where that is little."""
    runs = [{name: array.tolist() for name, array in run.items()} for run in trial.runs]
    told = str(runs)
    return told if len(told) < 2000 else "which --subject gives again"


def as_text(model: ModelProto) -> str:
    """For `onnx.parser.parse_model`; where the printer loses something, that is said."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        _unpack(tensor)
    found = printer.to_text(copy)
    try:
        again = parser.parse_model(found)
        note = "" if len(again.graph.node) == len(model.graph.node) else "# the parser reads less than this\n"
    except Exception as error:  # element types that the parser does not know
        note = f"# the parser does not read this ({str(error).splitlines()[0][:80]})\n"
    return note + found


_FIELDS = {TensorProto.FLOAT: "float_data", TensorProto.DOUBLE: "double_data", TensorProto.INT64: "int64_data"}


def _unpack(tensor: TensorProto) -> None:
    """The printer shows elements that are not raw."""
    from onnx import numpy_helper

    if tensor.HasField("raw_data") and tensor.data_type != TensorProto.STRING:
        array = numpy_helper.to_array(tensor)
        name = _FIELDS.get(tensor.data_type)
        if name is None and array.dtype.kind in "iub":
            name = "uint64_data" if array.dtype.name in ("uint64", "uint32") else "int32_data"
        if name is not None:
            tensor.ClearField("raw_data")
            flat = array.reshape(-1)
            getattr(tensor, name).extend((flat.astype(np.uint8) if flat.dtype.kind == "b" else flat).tolist())
