"""Programs that hear: what a model has to be for a microphone, and the ring between its driver and the pushes.

Invariant: the ring holds a push while the next one comes, so samples are lost only where a push takes longer than the
samples of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import Problem, WrongUse
from ..toolchain.model_report import Report

KINDS = ("i2s", "pdm", "adc")
_BLOCKS = 256  # samples that a driver hands over at once, at most
_SAMPLES = {"i16": "int16_t", "f32": "float"}


def refuse_unheard(content: Mapping[str, Any], report: Report) -> None:
    """What is not a stream of samples."""
    given = report.inputs
    reasons = {
        "it is not compiled as a stream": "hop" not in content.get("stream", {}),
        "it has not one input": len(given) != 1,
        "its input holds neither int16 nor float32": any(str(tensor.dtype) not in _SAMPLES for tensor in given),
        "a push takes more than one sample at a time of it": bool(given) and _hop(content) != _count(report),
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why:
        fix = "put a front end before it (`mccompile frontend`): --prepend features.onnx --stream samples=1,hop=320"
        raise WrongUse(Problem("--microphone needs a model that takes audio samples", "--microphone", why, fix))


def heard(content: Mapping[str, Any], report: Report, rate: int) -> dict[str, Any]:
    """What templates are told: the samples of a push, the ring, and the blocks of the driver."""
    hop = _hop(content)
    room = 1 << (2 * max(hop, _BLOCKS) - 1).bit_length()
    block = next(size for size in range(min(hop, _BLOCKS), 0, -1) if hop % size == 0)
    return {"hop": hop, "room": room, "block": block, "rate": rate, "sample_c": _SAMPLES[str(report.inputs[0].dtype)]}


def _hop(content: Mapping[str, Any]) -> int:
    return int(content.get("stream", {}).get("hop", 0))


def _count(report: Report) -> int:
    (given,) = report.inputs
    return given.nbytes // (given.dtype.bits // 8)
