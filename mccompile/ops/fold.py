"""Col2Im: blocks added up into an image."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from ..base.dtypes import bool_
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.fold import Fold
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported
from .rules.at_run_time import Formula, both, chosen, either, equals, static_count, static_shape
from .rules.backward import Backward


@dataclass(frozen=True)
class Col2Im(Operator):
    versions = (18,)
    dilations: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def blocks(self, site: Site) -> list[tuple[int, ...]]:
        """The size of a block; where it is computed at run time, all that lead to the declared shape."""
        if site.is_known(2):
            return [tuple(site.known_ints(2, "block_shape"))]
        declared, x = site.declared(0, "block_shape"), static_shape(site.type(0))
        if len(x) != 3 or len(declared) != 2 + static_count(site.type(2)) or not declared[1] or x[1] % declared[1]:
            raise Invalid(f"blocks {site.type(0)} do not make {declared}, which the model declares")
        size = x[1] // declared[1]
        sides = [side for side in range(1, size + 1) if size % side == 0]
        found = [block for block in product(sides, repeat=len(declared) - 2) if math.prod(block) == size]
        return [block for block in found if math.prod(self.plan(site, block)[1]) == x[2]]

    def plan(self, site: Site, block: tuple[int, ...]) -> tuple[Fold, tuple[int, ...]]:
        """The kind, and how many blocks there are along each axis."""
        known = site.is_known(1)
        space = tuple(site.known_ints(1, "image_shape")) if known else site.declared(0, "image_shape")[2:]
        axes = len(space)
        if static_count(site.type(1)) != axes:
            raise Invalid(f"image_shape is {site.type(1)}, the model declares {axes} axes")
        strides, dilations = self.strides or (1,) * axes, self.dilations or (1,) * axes
        pads = self.pads or (0,) * (2 * axes)
        if not axes or len(pads) != 2 * axes or any(len(each) != axes for each in (block, strides, dilations)):
            raise Invalid(f"image {space}, block {block}, strides {strides}, dilations {dilations}, pads {pads}")
        if min((*block, *strides, *dilations, *space)) < 1 or min(pads) < 0:
            raise Invalid(f"image {space}, block {block}, strides {strides}, dilations {dilations} must be positive")
        counts = tuple(
            max(0, (space[n] + pads[n] + pads[n + axes] - dilations[n] * (block[n] - 1) - 1) // strides[n] + 1)
            for n in range(axes)
        )
        return Fold(space, strides, dilations, pads[:axes]), counts

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        blocks = self.blocks(site)
        if not blocks:
            raise Invalid(f"no size of blocks makes {x} to the image that the model declares")
        kind, counts = self.plan(site, blocks[0])
        size = math.prod(blocks[0])
        if x.rank != 3 or x.shape[1] % size != 0 or x.shape[2] != math.prod(counts) or min(counts) < 1:
            raise Invalid(f"x {x} does not have {'x'.join(map(str, counts))} blocks of {size} elements")
        if x.dtype is bool_:
            raise Unsupported("adding up bools", "cast them to an integer before it")
        return [Fact(TensorType(x.dtype, (x.shape[0], x.shape[1] // size, *kind.space)))]

    def gradient(self, back: Backward) -> None:
        """An element of a block takes the gradient of the pixel that it was added to."""
        back.nothing(1, 2)
        if not back.site.is_known(2):
            back.refuse("the size of its blocks is known only at run time", "make block_shape a constant")
        block = self.blocks(back.site)[0]
        fold, counts = self.plan(back.site, block)
        taps = [
            np.arange(size)[:, None] * gap + np.arange(count) * step
            for size, gap, count, step in zip(block, fold.dilations, counts, fold.strides, strict=True)
        ]
        found = back.fitted(back.of(), 2, fold.before, [int(each.max()) + 1 for each in taps])
        for axis, each in enumerate(taps):
            found = back.op("Gather", found, back.constant(each), axis=2 + 2 * axis)
        order = [2 + 2 * axis for axis in range(len(block))]
        blocks_first = back.transpose(found, [0, 1, *order, *(axis + 1 for axis in order)])
        back.give(0, back.reshape(blocks_first, back.shape(0)))

    def lower(self, to: Lowering) -> None:
        type, blocks, formula = to.type(), self.blocks(to.site), Formula(to)
        if not to.site.is_known(1):
            for found, size in zip(formula.elements(1), type.static_shape[2:], strict=True):
                formula.require(equals(found, size))
        conditions = []
        if not to.site.is_known(2):
            asked = formula.elements(2)
            conditions = [both([equals(a, b) for a, b in zip(asked, block, strict=True)]) for block in blocks]
            formula.require(either(conditions))
        formula.check()
        views = []
        for block in blocks:
            kind, counts = self.plan(to.site, block)
            views.append(to.call(kind, [to.reshape(to.input(0), (*type.shape[:2], *block, *counts))], type)[0])
        to.set(0, views[0] if len(views) == 1 else chosen(formula, conditions, views))
