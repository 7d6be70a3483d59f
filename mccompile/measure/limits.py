"""What one core of this machine does at most: multiply-adds of floats and products of bytes on registers, and reading.

Invariant: each figure is that of one attempt, in this process; who wants the best of several takes turns with what is
compared with it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from ..base.discovery import data_folder
from ..codegen.int8.dot_forms import TERMS, form_of
from ..codegen.int8.dot_tiles import dot_lanes
from ..targets.api import Target
from ..toolchain.build import Compiler, Library, compile_shared, find_compiler, load

ROUNDS = 1_000_000
ATTEMPTS = 20
_CDEF = """
double mcc_peak_floats(long rounds);
double mcc_peak_bytes(long rounds);
double mcc_peak_read(const void *from, size_t bytes);
"""
Clock = Callable[[], float]  # seconds


class Limits:
    """`clock`: what attempts are timed by."""

    def __init__(self, target: Target, cc: str | None = None, clock: Clock = time.perf_counter) -> None:
        lanes = 0 if form_of(target) is TERMS else dot_lanes(target)
        self._code = _built(find_compiler(cc or target.compiler), (*target.cflags, f"-DDOT_LANES={lanes}"))
        self._clock = clock

    def floats(self) -> float:
        """Multiply-adds per second."""
        return self._rate(lambda: float(self._code.functions.mcc_peak_floats(ROUNDS)))

    def bytes(self) -> float:
        """Products of bytes that are added up, per second; 0 where the target has none."""
        return self._rate(lambda: float(self._code.functions.mcc_peak_bytes(ROUNDS)))

    def read(self, memory: np.ndarray) -> float:
        """Bytes per second of a memory that is read once more."""
        place = self._code.ffi.cast("void *", memory.ctypes.data)
        return self._rate(lambda: float(self._code.functions.mcc_peak_read(place, memory.nbytes)))

    def _rate(self, attempt: Callable[[], float]) -> float:
        start = self._clock()
        done = attempt()
        return done / max(self._clock() - start, 1e-9)


def measured_peak(target: Target, cc: str | None = None) -> float:
    """GFLOP/s of one core."""
    limits = Limits(target, cc)
    return 2e-9 * max(limits.floats() for _ in range(ATTEMPTS))


peak_once = cache(measured_peak)  # the same for all models of a process


@cache
def _built(compiler: Compiler, flags: tuple[str, ...]) -> Library:
    # Where what is loaded cannot be deleted (Windows), it stays until somebody clears the temporary files.
    with tempfile.TemporaryDirectory(prefix="mccompile-", ignore_cleanup_errors=True) as folder:
        include, source = data_folder("runtime_c") / "include", Path(__file__).with_name("peak.c")
        return load(compile_shared(compiler, [source], [include], Path(folder, "peak.so"), flags), _CDEF)
