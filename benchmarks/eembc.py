"""A scripted session with a board that answers the runner of MLPerf Tiny: accuracy, and microseconds of a run.

Its commands and their order are those of the runner; inputs go in pieces that its firmware takes.

    python -m benchmarks.eembc tcp:localhost:5000 --data kws01.npz --runs 10

The file has the bytes of inputs as the runner would send them (`sent`, u8 [N, BYTES]) and, for accuracy, `labels`: the
class of each, or for anomaly detection whether it is one (0 or 1).
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mccompile.toolchain.serial_line import Line, Port

PIECE = 31  # bytes of a command `db`
PATIENCE = 60.0  # seconds that a board may be silent
_READY = "m-ready"


class BoardError(Exception):
    """What the board said that is an error, or that it said nothing."""


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
                    raise BoardError(f"no {_READY} within {self.patience:g} s, but {lines}")
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


def _said(before: str, lines: Sequence[str]) -> str:
    found = [match[1] for line in lines if (match := re.fullmatch(rf"{re.escape(before)}\[(.*)\]", line))]
    if len(found) != 1:
        raise BoardError(f"no {before}[] in {list(lines)}")
    return found[0]


def accuracy(scores: Sequence[Sequence[float]], labels: Sequence[int]) -> float:
    """How many have the highest score at their label; of single scores the area under the ROC curve."""
    if len(scores[0]) > 1:
        return float(np.mean([int(np.argmax(each)) == label for each, label in zip(scores, labels, strict=True)]))
    values, odd = np.array(scores)[:, 0], np.array(labels, bool)
    above = values[odd][:, None] - values[~odd][None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def session(board: Board, sent: np.ndarray, labels: Sequence[int] | None, runs: int) -> dict[str, float | str]:
    """Performance on the first input, then each input once."""
    vendor, model = board.named()
    board.load(sent[0].tobytes())
    found: dict[str, float | str] = {"vendor": vendor, "model": model}
    found["microseconds"] = board.infer(runs, 1).microseconds
    scores = []
    for each in sent if labels is not None else ():
        board.load(each.tobytes())
        scores.append(board.infer(1, 0).scores)
    if labels is not None:
        found["accuracy"] = accuracy(scores, labels)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eembc")
    parser.add_argument("port", help="/dev/ttyACM0, COM3 or tcp:HOST:PORT")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--baud", type=int, default=115200)
    asked = parser.parse_args()
    stored = np.load(asked.data)
    line = Port(asked.port, asked.baud).open()
    try:
        labels = stored["labels"].tolist() if "labels" in stored else None
        for what, value in session(Board(line), stored["sent"], labels, asked.runs).items():
            print(f"{what:13}{value}")
    finally:
        line.close()


if __name__ == "__main__":
    main()
