"""Updates of weights as mcc_update.h takes them: what a host signs, and what a program knows of its slots.

Invariant: the manifest's layout stands here and in mcc_update.h, and tests/runtime_c/test_update.py compares both.
"""

from __future__ import annotations

import struct
import zlib

from ..base.errors import Problem, WrongUse
from .runtime import runtime_headers

_MAGIC, _FORMAT = b"MCCU", 1
_MOST = 2**32 - 1
_ROOM = 192  # of a slot, in front of the blob

_HEADER = """/* NAME_update.h: what slots for weights of the model "NAME" hold (mcc_update.h). */
#ifndef GUARD_UPDATE_H
#define GUARD_UPDATE_H

#include "mcc_update.h"

#define GUARD_UPDATE_BLOB_BYTES BYTESu
#define GUARD_UPDATE_SLOT_BYTES (MCC_UPDATE_BLOB_AT + GUARD_UPDATE_BLOB_BYTES)

/* The code whose weights these are. */
static const uint8_t NAME_update_identity[MCC_BLOB_IDENTITY_BYTES] = {
    IDENTITY,
};

#endif
"""


def update_header(prefix: str, identity: bytes, blob_bytes: int) -> dict[str, bytes]:
    """By their places in the output folder."""
    if blob_bytes + _ROOM > _MOST:
        why = f"the weights have {blob_bytes} bytes, and a slot less than 4 GiB"
        fix = "`mccompile blob` writes a whole blob for a program that loads it itself"
        raise WrongUse(Problem("the weights do not fit in a slot", prefix, why, fix))
    numbers = [f"0x{byte:02X}u" for byte in identity]
    text = _HEADER.replace("NAME", prefix).replace("GUARD", prefix.upper()).replace("BYTESu", f"{blob_bytes}u")
    text = text.replace("IDENTITY,\n", ", ".join(numbers[:8]) + ",\n    " + ", ".join(numbers[8:]) + ",\n")
    texts = {f"{prefix}_update.h": text} | runtime_headers(["mcc_update.h"])
    return {path: contents.encode() for path, contents in texts.items()}


def update_image(blob: bytes, version: int, counter: int) -> bytes:
    """Manifest and blob: all that is signed."""
    for value, option in ((version, "--version"), (counter, "--counter")):
        if not 0 <= value <= _MOST:
            raise WrongUse(Problem(f"{value} is not a number of 32 bits", option, "", f"write 0 to {_MOST}"))
    identity = blob[16:32]
    manifest = struct.pack("<4s5I16s20x", _MAGIC, _FORMAT, version, counter, len(blob), zlib.crc32(blob), identity)
    return manifest + struct.pack("<I", zlib.crc32(manifest)) + blob
