"""How constants are stored in the blob."""

from __future__ import annotations

from ...program.ir import Buffer
from ...targets.api import Prefer, Target

BLOB_ALIGN = 64  # of every constant, but where flash comes first


def constant_align(buffer: Buffer, target: Target) -> int:
    """Of a constant in the blob: that of a line of a cache; where flash comes first what elements, kernels, words and
    vectors need."""
    return BLOB_ALIGN if target.prefer != Prefer.FLASH else needed_align(buffer, target)


def needed_align(buffer: Buffer, target: Target) -> int:
    """What elements, kernels, words and vectors need of a constant's address."""
    needed = max(buffer.storage.align, buffer.dtype.bits // 8, target.pointer_bytes, target.vector_bytes)
    return min(BLOB_ALIGN, needed)
