"""What module_cases.c says of a module: results at two addresses, and what became of damaged ones."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mccompile.emit.statuses import ERRORS
from mccompile.toolchain.model_report import Report, Tensor

SOURCE = Path(__file__).with_suffix(".c")
FLIPS = 64
_CALLED = slice(64, 84)  # of a module's head: a bit for each function of the program
_TRIES = {
    "no byte": "MODULE_SIZE",
    "less than its head": "MODULE_SIZE",
    "its head alone": "MODULE_SIZE",
    "a byte short": "MODULE_SIZE",
    "more behind it": "OK",
    "another magic": "MODULE_MAGIC",
    "another version": "MODULE_VERSION",
    "another machine": "MODULE_MACHINE",
    "a core with more": "MODULE_MACHINE",
    "another checksum": "MODULE_CRC",
    "another entry point": "MODULE_CRC",
    "not aligned": "MODULE_ALIGN",
    "no functions": "MODULE_FUNCTION",
    "no table of functions": "NULL",
    "run before open": "NULL",
    "open": "OK",
    "run before init": "NULL",
    "memory too small": "ARENA_SIZE",
    "memory not aligned": "ARENA_ALIGN",
    "init": "OK",
    "push without a stream": "MODULE_CALL",
    "a tensor that is not there": "OK",
    **{f"byte {number} of {FLIPS} altered": "MODULE_CRC" for number in range(FLIPS)},
    "as it was": "OK",
}


def wanted(image: bytes) -> dict[str, str]:
    """What each try has to end with."""
    return _TRIES | ({} if any(image[_CALLED]) else {"no functions": "OK"})


def run(
    command: Sequence[str], report: Report, image: bytes, inputs: Mapping[str, np.ndarray], folder: Path
) -> tuple[list[dict[str, np.ndarray]], dict[str, str]]:
    """Outputs at both addresses, and how each try ended."""
    (folder / "net.mcm").write_bytes(image)
    (folder / "inputs.bin").write_bytes(b"".join(inputs[tensor.name].tobytes() for tensor in report.inputs))
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    contents = (folder / "results.bin").read_bytes()
    outputs = []
    for _ in range(2):
        found = {}
        for tensor in report.outputs:
            found[tensor.name], contents = _read(tensor, contents)
        assert contents[:4] == bytes(4)
        outputs.append(found)
        contents = contents[4:]
    names = {each.number: each.name.removeprefix("MCC_ERR_") for each in ERRORS} | {0: "OK"}
    words = struct.unpack(f"<{len(contents) // 4}I", contents)
    return outputs, dict(zip(_TRIES, (names[word] for word in words), strict=True))


def _read(tensor: Tensor, contents: bytes) -> tuple[np.ndarray, bytes]:
    array = np.frombuffer(contents[: tensor.nbytes], tensor.dtype.numpy).reshape(tensor.static_shape)
    return array, contents[tensor.nbytes :]
