"""Damaged and hostile files: each is refused with an error, or read, in bounded time; never a traceback.

`python -m tests.importers.tflite.test_damaged 10000` tries many more, and with `--compile SECONDS` compiles those
that can be read, until that time is over.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

import mccompile
from mccompile.base.errors import MccError
from mccompile.frontend.load import load_proto
from mccompile.importers.api import AS_IT_IS, Reading
from mccompile.importers.tflite.convert import to_onnx

from .networks import residual_network
from .test_constants import sparse_layer
from .test_detection import detector
from .test_subgraphs import looping

SECONDS = 5.0  # of this process, for a file of some kilobytes
SECONDS_TO_COMPILE = 60.0


def mutants(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Cut off, with numbers in place of others, with bytes changed, with parts over others."""
    chance = np.random.default_rng(seed)
    numbers = (0, 1, 2, 0xFF, 0x7FFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, len(data), len(data) - 4)
    for _ in range(count):
        made = bytearray(data)
        kind = int(chance.integers(5))
        if kind == 0:
            made = made[: int(chance.integers(8, len(data)))]
        elif kind == 1:
            for _ in range(int(chance.integers(1, 4))):
                place = int(chance.integers(2, len(data) // 4)) * 4
                struct.pack_into("<I", made, place, numbers[int(chance.integers(len(numbers)))])
        elif kind == 2:
            for _ in range(int(chance.integers(1, 20))):
                made[int(chance.integers(8, len(made)))] = int(chance.integers(256))
        elif kind == 3:
            size = int(chance.integers(4, 64))
            source, target = (int(chance.integers(8, len(data) - size)) for _ in range(2))
            made[target : target + size] = data[source : source + size]
        else:  # an offset to somewhere else, cycles among them
            place = int(chance.integers(2, len(data) // 4)) * 4
            struct.pack_into("<i", made, place, int(chance.integers(-len(data), len(data))))
        yield bytes(made)


def tried(data: bytes, whole: bool = False, reading: Reading = AS_IT_IS) -> str:
    """How reading a file ends, or compiling it as a whole."""
    started = time.process_time()
    try:
        if whole:
            mccompile.compile(data)
        else:
            load_proto(to_onnx(data, "net.tflite", reading), dims=reading.dims)
        ended = "compiled" if whole else "read"
    except MccError as error:
        ended = "refused"
        assert "Traceback" not in str(error)
    assert time.process_time() - started < (SECONDS_TO_COMPILE if whole else SECONDS)
    return ended


NETWORKS: dict[str, Callable[[], bytes]] = {
    "residual": residual_network,
    "looping": lambda: looping().file([2, 3]),
    "sparse": lambda: sparse_layer(True)[0],
    "detector": detector,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_mutated_files_are_refused_or_read(name: str) -> None:
    ends = [tried(mutant) for mutant in mutants(NETWORKS[name](), 75, len(name))]
    assert ends.count("refused") > len(ends) // 4


@pytest.mark.parametrize("name", NETWORKS)
def test_mutated_files_are_refused_or_compiled(name: str) -> None:
    ends = [tried(mutant, True) for mutant in mutants(NETWORKS[name](), 6, 2 * len(name))]
    assert set(ends) <= {"refused", "compiled"}


def test_mutated_files_are_refused_or_read_with_other_sizes() -> None:
    reading = Reading(dims={"batch": (1, 3)})
    ends = [tried(mutant, reading=reading) for mutant in mutants(residual_network(), 75, 5)]
    assert 0 < ends.count("read") < len(ends)


def test_a_file_cut_off_anywhere_is_refused_or_read() -> None:
    data = looping().file([2, 3])
    for size in range(8, len(data), 61):
        tried(data[:size])


def test_vectors_longer_than_the_file_are_refused() -> None:
    """The same vector of subgraphs many times over."""
    data = bytearray(residual_network())
    place = struct.unpack_from("<I", data)[0]  # the root
    table = place - struct.unpack_from("<i", data, place)[0]
    for field in range(4, struct.unpack_from("<H", data, table)[0], 2):
        offset = struct.unpack_from("<H", data, table + field)[0]
        if not offset or field == 4:
            continue
        made = bytearray(data)
        vector = place + offset + struct.unpack_from("<I", data, place + offset)[0]
        struct.pack_into("<I", made, vector, 0x7FFFFFFF)
        tried(bytes(made))


def main() -> None:
    count, whole = int(sys.argv[1]), "--compile" in sys.argv
    until = time.monotonic() + float(sys.argv[-1]) if whole else float("inf")
    drawn = [mutants(make(), count // len(NETWORKS), 1000 + number) for number, make in enumerate(NETWORKS.values())]
    found: dict[str, int] = {}
    for mutant in (mutant for each in zip(*drawn, strict=True) for mutant in each):
        try:
            end = tried(mutant, whole)
        except Exception as error:  # a bug: told with the file that shows it
            end = type(error).__name__
            Path(f"damaged_{sum(found.values())}.tflite").write_bytes(mutant)
            print(f"damaged_{sum(found.values())}.tflite: {end}: {error}", flush=True)
        found[end] = found.get(end, 0) + 1
        if time.monotonic() > until:
            break
    print(found)


if __name__ == "__main__":
    main()
