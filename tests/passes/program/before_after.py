"""Runs one pass on the text of a program. `#w` stands for a constant; the same letters mean the same contents."""

from __future__ import annotations

import re
import zlib

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.tensor import TensorType
from mccompile.kernels.registry import Registry
from mccompile.passes.api import Context, Memory, ProgramPass
from mccompile.pipeline import PROGRAM_PASSES
from mccompile.program.text import constants_of, read, show
from mccompile.program.verify import verify
from mccompile.targets import api as targets

PASSES = {step.name: step for step in PROGRAM_PASSES}


def after(
    name: str,
    text: str,
    keep_inputs: bool = False,
    target: str = "generic",
    bottlenecks: dict[frozenset[str], int] | None = None,
) -> str:
    """The program after one pass, in which constants that were there before have their short names."""
    step: ProgramPass = PASSES[name]
    constants: dict[str, Constant] = {}
    short: dict[str, str] = {}

    def digest(match: re.Match[str]) -> str:
        type = TensorType.parse(match[1], {})
        chance = np.random.default_rng(zlib.crc32(match[2].encode()))
        constant = Constant.of(chance.integers(-9, 9, type.static_shape).astype(type.dtype.numpy))
        constants[constant.digest] = constant
        short[constant.digest] = match[2]
        return f": {match[1]} = #{constant.digest}"

    text = re.sub(r": (\w+\[[\d,]*\]) = #(\w+)", digest, text)
    program = read(text, constants)
    verify(program, "reading")
    step.run(
        program, Context(targets.load(target), Registry.load(), Memory(keep_inputs), bottlenecks=bottlenecks or {})
    )
    verify(program, name)
    result = show(program)
    for long, name_ in short.items():
        result = result.replace(long, name_)
    assert not [d for d in constants_of(program) if d not in short and name != "pack_constants"]
    return result


def calls(text: str) -> list[str]:
    """Only the lines with calls."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith("call")]
