"""decode_image: the pixels of an image file. Operand u8[bytes]; results u8[height, width, parts], and one bool: was it
a file of a format that is known (see mcc_image.h), with an image of this size?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import bool_, u8
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind

PIXELS = ("RGB", "BGR", "Grayscale")


@dataclass(frozen=True)
class DecodeImage(Kind):
    roles: ClassVar[tuple[str, ...]] = ("file",)
    pixels: str

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or ins[0].dtype is not u8 or ins[0].rank != 1 or self.pixels not in PIXELS:
            return "an image is decoded from a vector of bytes"
        parts = 1 if self.pixels == "Grayscale" else 3
        if len(outs) != 2 or outs[0].rank != 3 or outs[0].shape[2] != parts or outs[1] != TensorType(bool_, ()):
            return f"the results are {', '.join(map(str, outs))}, not an image of {parts} parts and a bool"
        return "" if outs[0].dtype is u8 else f"the image is {outs[0]}"
