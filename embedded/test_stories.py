"""A language model on an emulated core: the tokens of onnxruntime, with 8 bits, and with 4 bits in half the flash."""

from __future__ import annotations

import numpy as np
import pytest

from embedded.stories import SIDES, STORY, told
from mccompile.toolchain.tools import missing

BEGIN, MOST = [43, 3], 4
NONE = frozenset[int]()


def likeliest() -> list[int]:
    session = pytest.importorskip("onnxruntime").InferenceSession(STORY)
    past = {f"past_key_values.{side}": np.zeros((1, 4, 0, 16), np.float32) for side in SIDES}
    tokens = list(BEGIN)
    for at in range(MOST):
        logits, *present = session.run(None, {"token": np.array([[tokens[at]]]), **past})
        past = dict(zip(past, present, strict=True))
        if at == len(tokens) - 1:
            tokens.append(int(np.argmax(logits)))
    return tokens


@pytest.mark.skipif(bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="nothing emulates the board")
def test_a_core_writes_the_story() -> None:
    bytes_, nibbles = (told("cortex-m4", bits, BEGIN, MOST, NONE) for bits in (8, 4))
    assert bytes_.tokens == nibbles.tokens == likeliest()
    assert nibbles.weights <= 0.55 * bytes_.weights
    assert nibbles.last.run_instructions > nibbles.first.run_instructions  # it looks at more tokens
