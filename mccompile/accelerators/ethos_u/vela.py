"""Vela: a TFLite file to a command stream for an Ethos-U."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...base.records import dataclass
from ..api import No


@dataclass(frozen=True, eq=False)
class Stream:
    commands: np.ndarray
    weights: np.ndarray
    scratch: int  # bytes
    places: tuple[int, ...]  # of the inputs, then of the outputs, in the scratch
    cycles: float
    waits: float  # of these, cycles in which weights arrive from flash and nothing else takes as long


@lru_cache(maxsize=64)
def compiled(file: bytes, config: str) -> Stream | No:
    """What Vela makes of the file, all of it on the accelerator; else why not."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        path = Path(scratch, "region.tflite")
        path.write_bytes(file)
        words = [sys.executable, "-m", "ethosu.vela", str(path), "--accelerator-config", config]
        words += ["--memory-mode", "Shared_Sram"]  # the only scratch is that of the arena
        done = subprocess.run(
            [*words, "--output-format", "raw", "--output-dir", scratch], capture_output=True, text=True, check=False
        )
        made = Path(scratch, "region_vela.npz")
        if done.returncode != 0 or not made.is_file() or "CPU operators = 0" not in done.stdout:
            return _refusal((done.stderr + done.stdout).splitlines())
        summary = next(Path(scratch).glob("region_summary_*.csv"))
        with summary.open(encoding="utf-8") as text:
            row = next(csv.DictReader(text))
        cycles, *busy = (float(row[f"cycles_{of}"]) for of in ("total", "npu", "sram_access", "dram_access"))
        with np.load(made, allow_pickle=False) as found:
            if int(found["scratch_fast_size"]) or np.any(found["input_region"] != 1):
                return No("Vela keeps tensors in a second memory")
            places = (*found["input_offset"].tolist(), *found["output_offset"].tolist())
            commands, weights = (_bytes(found[name]) for name in ("cmd_data", "weight_data"))
            return Stream(commands, weights, int(found["scratch_size"]), places, cycles, cycles - max(busy))


def _refusal(lines: Sequence[str]) -> No:
    named = next((line for line in reversed(lines) if "rror" in line), "")
    return No(f"Vela does not compile it: {named or 'some of it is left to the core'}")


def _bytes(text: np.ndarray) -> np.ndarray:
    """numpy's text, with the zeros at its end that `tolist` would drop."""
    return np.frombuffer(text.tobytes(), np.uint8)
