"""Col2Im: blocks added up into an image."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..base.dtypes import bool_
from ..base.tensor import TensorType
from ..kinds.fold import Fold
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported


@dataclass(frozen=True)
class Col2Im(Operator):
    name = "Col2Im"
    versions = (18,)
    dilations: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def plan(self, site: Site) -> tuple[Fold, tuple[int, ...], tuple[int, ...]]:
        """The kind, the size of a block, and how many blocks there are along each axis."""
        space = tuple(site.known_ints(1, "image_shape"))
        block = tuple(site.known_ints(2, "block_shape"))
        axes = len(space)
        strides, dilations = self.strides or (1,) * axes, self.dilations or (1,) * axes
        pads = self.pads or (0,) * (2 * axes)
        if not axes or len(pads) != 2 * axes or any(len(each) != axes for each in (block, strides, dilations)):
            raise Invalid(f"image {space}, block {block}, strides {strides}, dilations {dilations}, pads {pads}")
        if min((*block, *strides, *dilations, *space)) < 1 or min(pads) < 0:
            raise Invalid(f"image {space}, block {block}, strides {strides}, dilations {dilations} must be positive")
        counts = tuple(
            (space[n] + pads[n] + pads[n + axes] - dilations[n] * (block[n] - 1) - 1) // strides[n] + 1
            for n in range(axes)
        )
        return Fold(space, strides, dilations, pads[:axes]), block, counts

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        kind, block, counts = self.plan(site)
        size = math.prod(block)
        if x.rank != 3 or x.shape[1] % size != 0 or x.shape[2] != math.prod(counts) or min(counts) < 1:
            raise Invalid(f"x {x} does not have {'x'.join(map(str, counts))} blocks of {size} elements")
        if x.dtype is bool_:
            raise Unsupported("adding up bools", "cast them to an integer before it")
        return [Fact(TensorType(x.dtype, (x.shape[0], x.shape[1] // size, *kind.space)))]

    def lower(self, to: Lowering) -> None:
        kind, block, counts = self.plan(to.site)
        type = to.type()
        to.set(0, to.call(kind, [to.reshape(to.input(0), (*type.shape[:2], *block, *counts))], type)[0])
