"""The file next to printed IR with the contents of constants, keyed by the digests that the text shows instead of them.

A zip file, nothing compressed, one entry per digest: a line with the type, then the elements as `Constant.raw_bytes`
gives them. Invariant: equal constants give equal bytes (no timestamps), and what is read has the digest it is found by.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..base.constant import Constant
from ..base.errors import BadFile, Problem
from ..base.tensor import TensorType


def write_constants(path: Path, constants: Mapping[str, Constant]) -> None:
    """Adds what the file does not hold yet."""
    with zipfile.ZipFile(path, "a") as file:
        held = set(file.namelist())
        for digest in sorted(set(constants) - held):
            constant = constants[digest]
            file.writestr(zipfile.ZipInfo(digest), f"{constant.type}\n".encode() + constant.raw_bytes())


def read_constants(path: Path) -> dict[str, Constant]:
    """Every constant in the file, by digest."""
    try:
        with zipfile.ZipFile(path) as file:
            found = {digest: _constant(file.read(digest)) for digest in file.namelist()}
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as problem:
        raise BadFile(Problem("cannot read the constants", str(path), str(problem))) from None
    for digest, constant in found.items():
        if constant.digest != digest:
            raise BadFile(Problem("cannot read the constants", str(path), f"the contents of #{digest} are not its own"))
    return found


def _constant(data: bytes) -> Constant:
    head, _, body = data.partition(b"\n")
    type = TensorType.parse(head.decode(), {})
    if type.dtype.kind == "string":
        texts = []
        while body:
            length = int.from_bytes(body[:4], "little")
            texts.append(body[4 : 4 + length].decode(errors="surrogateescape"))
            body = body[4 + length :]
        array = np.empty(len(texts), dtype=object)
        array[:] = texts
        return Constant(type, lambda: array.reshape(type.static_shape))
    return Constant.of(np.frombuffer(body, type.dtype.numpy).reshape(type.static_shape))
