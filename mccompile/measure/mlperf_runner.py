"""The runner's side of MLPerf Tiny: its commands in their order, to a board that answers them (mcc_eembc.h).

Inputs go in pieces that the runner's own firmware takes.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import CheckFailed, Problem
from ..base.records import dataclass
from ..toolchain.serial_line import Line
from .eembc import Benchmark

PIECE = 31  # bytes of a command `db`
PATIENCE = 60.0  # seconds that a board may be silent
DETECTED, LATE = 115, 1.0  # of the first score as int8; seconds
_READY = "m-ready"


class BoardError(CheckFailed):
    """What the board said that is an error, or that it said nothing."""

    def __init__(self, said: str, fix: str = "") -> None:
        super().__init__(Problem("the board does not answer as MLPerf Tiny's runner asks", "--serial", said, fix))


@dataclass(frozen=True)
class Inference:
    scores: tuple[float, ...]
    microseconds: float  # of a run; 0 for energy, where a pin tells it to an instrument


class Board:
    """The other end of a line."""

    def __init__(self, line: Line, patience: float = PATIENCE) -> None:
        self.line, self.patience = line, patience
        self._come = b""
        self.line.send(b"name%")
        while not any(said.startswith("m-name-") for said in self.answer()):
            pass  # what a board says when it starts

    def ask(self, command: str) -> list[str]:
        """The lines of an answer, without the last one."""
        self.line.send(f"{command}%".encode())
        return self.answer()

    def answer(self) -> list[str]:
        until, lines = time.monotonic() + self.patience, list[str]()
        while True:
            line, end, rest = self._come.partition(b"\n")
            if not end:
                if time.monotonic() > until:
                    fix = "flash the project of `mccompile deploy --mlperf-tiny`, and give the port of its line"
                    raise BoardError(f"no {_READY} within {self.patience:g} s, but {lines}", fix)
                self._come += self.line.receive()
                continue
            self._come, said = rest, line.decode("ascii", "replace").strip()
            if said == _READY:
                return lines
            if said.startswith("e-["):
                self.answer()
                raise BoardError(said)
            lines.append(said)

    def named(self) -> tuple[str, str]:
        """Vendor and model."""
        return _said("m-name-dut-", self.ask("name")), _said("m-model-", self.ask("profile"))

    def load(self, sent: bytes) -> None:
        self.ask(f"db load {len(sent)}")
        last: list[str] = []
        for at in range(0, len(sent), PIECE):
            last = self.ask(f"db {sent[at : at + PIECE].hex()}")
        if last != ["m-load-done"]:
            raise BoardError(f"an input of {len(sent)} bytes is not whole: {last}")

    def infer(self, runs: int, warm_up: int) -> Inference:
        lines = self.ask(f"infer {runs} {warm_up}")
        laps = [int(line.removeprefix("m-lap-us-")) for line in lines if line.startswith("m-lap-us-")]
        scores = tuple(float(each) for each in _said("m-results-", lines).split(","))
        spent = (laps[1] - laps[0]) % 2**32 / runs if len(laps) == 2 else 0.0
        return Inference(scores, spent)

    def listen(self, pushes: Sequence[bytes]) -> list[int]:
        """What the board says of each push of samples, from a start to a stop; the runner's interface board plays
        them where this sends them."""
        self.ask("stop")
        self.ask("start")
        for samples in pushes:
            self.load(samples)
            _said("m-activations-", self.ask("extract_uart_stream"))
        told = re.search(r"target activations:\s*\[(.*)\]", " ".join(self.ask("stop")))
        return [int(each) for each in told[1].split(",")] if told else []


def _said(before: str, lines: Sequence[str]) -> str:
    found = [match[1] for line in lines if (match := re.fullmatch(rf"{re.escape(before)}\[(.*)\]", line))]
    if len(found) != 1:
        raise BoardError(f"no {before}[] in {list(lines)}")
    return found[0]


def reals(values: np.ndarray, told: Mapping[str, Any]) -> np.ndarray:
    """Integers of an input or output of a report as the numbers that they stand for; floats as they are."""
    if values.dtype.kind == "f":
        return values
    (scale,), (zero,) = told["quantized"]["scales"], told["quantized"]["zeros"]
    return np.asarray((values.astype(np.float64) - zero) * scale)


def as_sent(asked: Benchmark, values: np.ndarray, told: Mapping[str, Any]) -> bytes:
    """An input, of which the report says `told`, as the runner sends it."""
    if asked.sends == "floats":
        return reals(values, told).astype("<f4").tobytes()
    if asked.sends == "pixels" and values.dtype == np.int8:
        return (values.astype(np.int16) + 128).astype(np.uint8).tobytes()
    return values.tobytes()


def accuracy(scores: Sequence[Sequence[float]], labels: Sequence[int]) -> float:
    """How many have the highest score at their label; of single scores the area under the ROC curve."""
    if len(scores[0]) > 1:
        return float(np.mean([int(np.argmax(each)) == label for each, label in zip(scores, labels, strict=True)]))
    values, odd = np.array(scores)[:, 0], np.array(labels, bool)
    above = values[odd][:, None] - values[~odd][None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


@dataclass(frozen=True)
class Detections:
    hits: int
    missed: int
    false: int


def detections(activations: Sequence[int], seconds: float, words: Sequence[tuple[float, float]]) -> Detections:
    """As the runner counts them: a word is heard up to a second behind its end, and what is heard elsewhere counts once
    a second. `seconds`: of a push; `words`: when they begin and end."""
    times = [seconds * (at + 1) for at, score in enumerate(activations) if score > DETECTED]
    hit = [any(begin <= when <= end + LATE for when in times) for begin, end in words]
    elsewhere = [when for when in times if not any(begin <= when <= end + LATE for begin, end in words)]
    last, false = -np.inf, 0
    for when in elsewhere:
        if when > last + LATE:
            last, false = when, false + 1
    return Detections(sum(hit), len(hit) - sum(hit), false)


def session(
    board: Board, benchmark: Benchmark, sent: Sequence[bytes], labels: Sequence[int], runs: int, windows: int = 1
) -> dict[str, Any]:
    """Performance on the first input, the median of some measurements; then each input that has a label, once."""
    vendor, model = board.named()
    if model != benchmark.model:
        raise BoardError(f"it is {model}", f"flash the program that answers as {benchmark.model}")
    board.load(sent[0])
    spent = statistics.median(board.infer(runs, 1).microseconds for _ in range(windows))
    found: dict[str, Any] = {"vendor": vendor, "model": model, "windows": windows, "runs": runs, "microseconds": spent}
    found["inferences_per_second"] = 1e6 / spent if spent else 0.0
    scores = []
    for each in sent[: len(labels)]:
        board.load(each)
        scores.append(board.infer(1, 0).scores)
    if scores:
        found |= {"samples": len(scores), benchmark.judged_by: accuracy(scores, labels)}
    return found
