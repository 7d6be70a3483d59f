"""Where a board first differs: what its steps have made, as a dump has it, beside what the same code makes on this
machine, and beside what the model's file says.

The same code is the better witness: it makes the same things in the same order, integers bit by bit. The file's
reference (onnxruntime where it is installed, else ONNX's evaluator) tells whether both are wrong. Invariant: what is
compared with the file is what the compiler knows to be that tensor, in the file's order of axes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import string
from ..base.errors import BadFile, CheckFailed, MccError, Problem, WrongUse
from ..base.records import dataclass
from ..check.compare import Comparison
from ..check.oracle import Oracle
from ..emit.summary import table
from ..frontend.original import Original
from ..importers.api import Reading
from ..targets import api as target_api
from ..toolchain.dump import VALUE, Record, Run, read_dump
from ..toolchain.emulate import Emulated
from ..toolchain.model_report import Report, read_report
from ..toolchain.run import Model
from .verdict import DEFAULT, Tolerance

# Kernels written for cores that this machine has not, as C: the same bits.
_PORTABLE = ("-DMCC_DSP_PORTABLE", "-DMCC_HELIUM_PORTABLE", "-DMCC_SCALAR_PORTABLE")
ROUNDED = 1  # step of 8 and 16 bits that integers may be off where floats before them were rounded otherwise


@dataclass(frozen=True)
class Line:
    """One thing that a step has made."""

    step: int
    nodes: str
    name: str
    shape: tuple[int, ...]
    here: Comparison | None  # beside the same code; None where that was not run
    file: Comparison | None  # beside the model's file
    where: str = ""  # what differs first

    @property
    def ok(self) -> bool:
        return all(found is None or found.ok for found in (self.here, self.file))


@dataclass(frozen=True)
class Compared:
    """A run of the board."""

    model: str
    witness: str  # where the same code was run
    reference: str  # what has run the file
    lines: tuple[Line, ...]
    ended: bool
    damaged: int = 0
    unseen: Sequence[Mapping[str, str]] = field(default_factory=tuple)

    @property
    def board(self) -> Line | None:
        """The first that the board makes otherwise than the same code does elsewhere."""
        return next((line for line in self.lines if line.here is not None and not line.here.ok), None)

    @property
    def first(self) -> Line | None:
        return self.board or next((line for line in self.lines if not line.ok), None)

    @property
    def ok(self) -> bool:
        return self.first is None and self.ended

    def as_dict(self) -> dict[str, Any]:
        first = self.first
        return {
            "ok": self.ok,
            "model": self.model,
            "ended": self.ended,
            "damaged_records": self.damaged,
            "same_code": self.witness,
            "reference": self.reference,
            "first": None if first is None else {**_entry(first), "board_only": first is self.board},
            "values": [_entry(line) for line in self.lines],
            "unseen": [dict(each) for each in self.unseen],
        }

    def show(self) -> str:
        """For the terminal."""
        rows = [
            [str(line.step), line.name, "x".join(map(str, line.shape)), _word(line.here), _word(line.file), line.nodes]
            for line in self.lines
        ]
        head = ["step", "value", "shape", "same code", "file", "nodes"]
        sides = f"the same code on {self.witness or '(not run)'}; file by {self.reference or '(not run)'}"
        lines = [f"{self.model}: {sides}"]
        lines += table(head, rows, frozenset({1, 2, 3, 4, 5}))
        fused = f"{len(self.unseen)} tensors of the file are not there (fused, folded): --json lists them"
        lines += [fused] if self.unseen else []
        lines += [f"{self.damaged} records are damaged and were left out"] if self.damaged else []
        return "\n".join(lines)

    def failure(self) -> CheckFailed:
        first = self.first
        if first is None:
            why = "its last record is missing: the run ended with a status or a fault, or the dump was cut off"
            return CheckFailed(
                Problem("the run on the board did not finish", self.model, why, "look at what <model>_run gave")
            )
        found = first.here if first is self.board else first.file
        assert found is not None
        where = f"step {first.step} ({first.nodes}), value {first.name!r}"
        why = found.why or f"{found.mismatches} elements differ, by {found.max_abs:.3g} at most; {first.where}"
        if first is self.board:
            fix = "earlier steps agree: check the weights and memory that it reads, and its compiler's flags"
            return CheckFailed(Problem("the board differs from the same code on this machine", where, why, fix))
        if not self.witness:
            fix = "install a C compiler: then the same code on this machine is compared too"
            return CheckFailed(Problem("the board differs from the file", where, why, fix))
        fix = "`mccompile check` tells whether that is more than rounding"
        return CheckFailed(Problem("board and this machine agree, but differ from the model file", where, why, fix))


def _entry(line: Line) -> dict[str, Any]:
    found = {"step": line.step, "nodes": line.nodes, "name": line.name, "shape": list(line.shape), "ok": line.ok}
    for key, side in (("same_code", line.here), ("file", line.file)):
        if side is not None:
            found[key] = {"max_abs": side.max_abs, "mismatches": side.mismatches, "why": side.why}
    return {**found, "where": line.where}


def _word(found: Comparison | None) -> str:
    if found is None:
        return "-"
    if not found.ok:
        return "DIFFERS"
    return f"rounding {found.max_abs:.2g}" if found.max_abs else "equal"


def compare_dump(
    folder: Path,
    dump: Path | Callable[[], bytes],
    model: Path | None = None,
    cc: str | None = None,
    tolerance: Tolerance = DEFAULT,
) -> Compared:
    """What a dump says, beside the code in `folder` and, where it is given, the model's file."""
    report = read_report(folder)
    content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    if "unseen" not in content:
        fix = "compile it with --dump-values, and run that on the board"
        raise WrongUse(Problem("there is nothing to compare", str(folder), "this build has no --dump-values", fix))
    try:
        found = read_dump(dump.read_bytes() if isinstance(dump, Path) else dump())
    except OSError as error:
        raise BadFile(Problem(f"cannot read {dump}", "", error.strerror or str(error))) from None
    where = str(dump) if isinstance(dump, Path) else report.prefix
    runs = [run for run in found.runs if run.prefix == report.prefix]
    if not runs:
        why = f"of its records {found.damaged} are damaged" if found.damaged else "it has no record of such a run"
        fix = "send every byte as it is: a serial line must not change line ends"
        raise BadFile(Problem(f"there is no run of {report.prefix} in it", where, why, fix))
    for run in runs:
        if run.identity.hex() != content["identity"]:
            why = f"it is of code {run.identity.hex()}, {folder} has {content['identity']}"
            fix = f"give the folder that the board's program was built from, or flash {folder}"
            raise BadFile(Problem("the dump comes from another build", where, why, fix))
    witness, why = runnable(folder, content, cc, dump=True)
    compared: Compared | None = None
    for run in runs:
        compared = _compared(run, report, content, witness, model, tolerance)
        if not compared.ok:
            break
    assert compared is not None
    if not compared.witness and not compared.reference:
        fix = "name the model: --model model.onnx; or install a C compiler"
        raise WrongUse(Problem("there is nothing to compare with", str(folder), why, fix))
    return replace(compared, damaged=found.damaged)


def runnable(
    folder: Path, content: Mapping[str, Any], cc: str | None = None, dump: bool = False
) -> tuple[Model | Emulated | None, str]:
    """The same code as it runs here; what keeps it from that. `content` is the code's report."""
    flags = ("-std=c99", "-O1", *(_PORTABLE if not content.get("hosted", True) else content.get("flags", ())))
    try:
        return Model.build(folder, cc, flags, dump=dump), ""
    except MccError as error:
        why = str(error)
    try:
        target = target_api.load(content["target"])
        return (Emulated.build(folder, target, dump=dump) if target.run else None), why
    except MccError:
        return None, why


def _compared(
    run: Run,
    report: Report,
    content: Mapping[str, Any],
    witness: Model | Emulated | None,
    model: Path | None,
    tolerance: Tolerance,
) -> Compared:
    missing = [tensor for tensor in report.inputs if tensor.name not in run.inputs]
    if missing:
        what = "strings are not dumped" if missing[0].dtype is string else "its record is damaged or was not sent"
        raise BadFile(Problem(f"input {missing[0].name!r} is not in the dump", report.prefix, what))
    here = _here(run, report, witness)
    wanted, reference = _of_file(run, model, content)
    nodes = [step["name"] or step["op"] for step in content["steps"]]
    lines: list[Line] = []
    rounded = False
    others = here.made if here is not None else []
    for number, record in enumerate(run.made):
        same: Comparison | None = None
        other = others[number] if number < len(others) else None
        if here is not None:
            exact = replace(tolerance, steps=ROUNDED if rounded else 0)
            same = _beside(record, other, exact)
            rounded = rounded or (same.ok and same.max_abs > 0)
        told = wanted.get(record.name) if record.kind == VALUE else None
        fits = told is not None and told.shape == record.shape and told.dtype == record.array.dtype
        file = replace(tolerance, steps=ROUNDED).compare(record.name, record.array, told) if fits else None
        wrong = other.array if same is not None and not same.ok and other is not None else told if fits else None
        where = "" if wrong is None or wrong.shape != record.shape else first_element(record.array, wrong)
        lines.append(Line(record.step, nodes[record.step], record.name, record.shape, same, file, where))
        if same is not None and same.why:
            break  # the runs have parted
    how = "" if here is None else "this machine" if isinstance(witness, Model) else "an emulator"
    return Compared(report.prefix, how, reference, tuple(lines), run.ended, unseen=content["unseen"])


def _here(run: Run, report: Report, witness: Model | Emulated | None) -> Run | None:
    """The same run by the same code."""
    if witness is None:
        return None
    rooms = {tensor.name: tensor.nbytes for tensor in report.states}
    state = b"".join(record.data.ljust(rooms[record.name], b"\0") for record in run.states)
    if report.warm_up:
        state += report.warm_up.to_bytes(4, "little")
    return read_dump(witness.dump(run.inputs, state)).runs[0]


def _beside(record: Record, other: Record | None, tolerance: Tolerance) -> Comparison:
    if other is None or (record.step, record.name, record.shape) != (other.step, other.name, other.shape):
        here = "nothing" if other is None else f"{other.name!r} of step {other.step}"
        why = f"the runs part here: elsewhere {here} comes now"
        return Comparison(record.name, float("inf"), float("inf"), 1, why)
    return tolerance.compare(record.name, record.array, other.array)


def _of_file(run: Run, model: Path | None, content: Mapping[str, Any]) -> tuple[Mapping[str, np.ndarray], str]:
    """Tensors by name, and what has computed them."""
    if model is None:
        return {}, ""
    options = content.get("options", {})
    changed = [flag for flag in ("inputs", "outputs", "prepend", "stream", "state") if options.get(flag)]
    shapes = {name: np.shape(array) for name, array in run.inputs.items()}
    reading = Reading(str(options.get("signature", "")), shapes=shapes)
    original = Original(model, reading)
    if changed or options.get("io_layout", "onnx") != "onnx" or set(original.inputs) != set(run.inputs):
        why = "inputs or outputs are not those of the file, or a run goes on from another"
        fix = "leave out --model: the same code on this machine is compared"
        raise WrongUse(Problem("the model's file does not say what such a run gives", str(model), why, fix))
    known = {*original.inner, *original.outputs}
    names = {record.name for record in run.made if record.kind == VALUE and record.name in known}
    oracle = Oracle(model, [name for name in original.inner if name in names], reading)
    results = oracle.run(run.inputs)
    return {name: array for name, array in results.items() if isinstance(array, np.ndarray)}, oracle.name


def first_element(got: np.ndarray, want: np.ndarray) -> str:
    """What differs first, and an axis along which all that differs stands at one place: a channel, most often."""
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(got.astype(np.float64) - want.astype(np.float64)) if got.dtype.kind in "fiub" else got != want
    away = np.where(got == want, 0, np.where(away == away, away, np.inf))
    if not away.any():
        return ""
    found = np.argwhere(away > np.max(away, where=np.isfinite(away), initial=0.0) * 1e-3)
    found = found if len(found) else np.argwhere(away)
    at = tuple(int(place) for place in found[0])
    same = [axis for axis in range(got.ndim) if got.shape[axis] > 1 and len(set(found[:, axis].tolist())) == 1]
    alone = "".join(f", all of them at {int(found[0][axis])} of axis {axis}" for axis in same if len(found) > 1)
    return f"the first is {list(at)}: {got[at]} instead of {want[at]}{alone}"
