"""The language model of examples/story on microcontrollers: python -m embedded.stories prints what it writes there.

All its matrices have 4 bits, as they were trained; with 8 bits the same levels are stored as bytes, so both write the
same story.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

from mccompile.driver import Options, compile
from mccompile.emit.summary import table
from mccompile.measure.building import build
from mccompile.measure.cost import flash_of
from mccompile.toolchain.emulate import Count, Emulated

STORY = Path(__file__).resolve().parent.parent / "examples" / "story" / "story.onnx"
SIDES = [f"{layer}.{side}" for layer in range(3) for side in ("key", "value")]
HOW: dict[str, Any] = {
    "state": {f"present.{side}": f"past_key_values.{side}" for side in SIDES},
    "dims": {"past": (0, 95)},
}
CORES = ("cortex-m4", "cortex-m7", "cortex-m55")
BITS = (8, 4)
BEGIN = "Once there was a brave"
MOST = 96  # tokens
HEAD = ("core", "bits", "first token", "last token", "code", "weights", "arena", "stack")


def story(bits: int) -> ModelProto:
    """The model with so many bits for a level."""
    model = onnx.load(STORY)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "bits":
                attribute.i = bits
    for tensor in model.graph.initializer:
        if bits == 8 and tensor.name.endswith(".levels"):
            tensor.CopyFrom(numpy_helper.from_array(_widened(numpy_helper.to_array(tensor)), tensor.name))
    return model


def _widened(pairs: np.ndarray) -> np.ndarray:
    """Levels around 8, two in a byte, as levels around 128."""
    levels = np.stack([pairs & 15, pairs >> 4], -1).reshape(*pairs.shape[:-1], -1)
    return np.asarray(levels + np.uint8(128 - 8))


def saved(bits: int, folder: Path) -> Path:
    path = folder / f"story_{bits}bit.onnx"
    onnx.save(story(bits), path)
    return path


@dataclass(frozen=True)
class Told:
    tokens: list[int]
    first: Count  # what the first token takes, and the last one
    last: Count
    code: int
    weights: int
    arena: int

    @property
    def figures(self) -> list[str]:
        stack = max(self.first.run_stack or 0, self.last.run_stack or 0)
        numbers = (self.first.run_instructions, self.last.run_instructions, self.code, self.weights, self.arena, stack)
        return [f"{number:,}" for number in numbers]


def told(target: str, bits: int, begin: Sequence[int], most: int, ends: frozenset[int]) -> Told:
    """The likeliest tokens behind some, up to one of `ends`: a run for each on the emulated core."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        options = Options(target=target, **HOW)
        package = compile(saved(bits, Path(scratch)), options)
    model = build(package, options.resolved_target())
    assert isinstance(model, Emulated)
    tokens, state, before = list(begin), None, None
    for at in range(most):
        before = state
        found = model.run_twice(_token(tokens[at]), state)[0]
        state = found.state
        if at == len(tokens) - 1:
            tokens.append(int(np.argmax(found.outputs["logits"])))
            if tokens[-1] in ends:
                break
    counts = [model.count(_token(tokens[at]), state=was) for at, was in ((0, None), (len(tokens) - 2, before))]
    return Told(tokens, *counts, flash_of(model.sections), package.weights_bytes, package.plan.arena_bytes)


def _token(token: int) -> dict[str, np.ndarray]:
    return {"token": np.array([[token]], np.int64)}


def main() -> int:
    sys.path.insert(0, str(STORY.parent))
    from stories import encoded, pieces_of, stories  # type: ignore[import-not-found]

    pieces = pieces_of(stories(3000, 7), 256)
    ends = frozenset(number for number, piece in enumerate(pieces) if piece.endswith("\n"))
    lines = []
    for core in CORES:
        for bits in BITS:
            made = told(core, bits, encoded(BEGIN, pieces), MOST - 1, ends)
            text = "".join(pieces[token] for token in made.tokens).rstrip()
            print(f"{core}, {bits} bits, {len(made.tokens)} tokens: {text}")
            lines.append([core, str(bits), *made.figures])
    print("\n".join(table(HEAD, lines, frozenset({0}))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
