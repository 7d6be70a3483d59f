"""Transpose, DepthToSpace, SpaceToDepth, ChannelShuffle: axes in another order. Views, and a copy only where strides
cannot say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..base.dims import Dim, static
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site
from .rules.known_shapes import moved

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class Transpose(Operator):
    versions = (1, 13, 21, 23, 24, 25)
    fusion = INJECTIVE
    perm: tuple[int, ...] | None = None

    def order(self, rank: int) -> tuple[int, ...]:
        if self.perm is None:
            return tuple(reversed(range(rank)))
        if sorted(self.perm) != list(range(rank)):
            raise Invalid(f"perm {self.perm} is not an order of {rank} axes")
        return self.perm

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        order = self.order(x.rank)
        type = TensorType(x.dtype, tuple(x.shape[axis] for axis in order))
        return [moved(site, type, lambda value: value.transpose(order))]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        to.set(0, x.permuted(self.order(len(x.shape))))

    def gradient(self, back: Backward) -> None:
        order = self.order(len(back.shape(0)))
        back.give(0, back.transpose(back.of(), [order.index(axis) for axis in range(len(order))]))


@dataclass(frozen=True)
class TransposeInMemory(Transpose):
    """A transpose whose result lies in memory in its own order, instead of being another look at the operand. Made by
    assign_layout."""

    domain = "mccompile"

    def lower(self, to: Lowering) -> None:
        to.set(0, to.copy(to.input(0).permuted(self.order(to.type().rank))))


@dataclass(frozen=True)
class ChannelShuffle(Operator):
    """The first channel of every group, then the second of every group, and so on. Made by recognise_idioms."""

    domain = "mccompile"
    fusion = INJECTIVE
    groups: int
    axis: int = 1

    def infer(self, site: Site) -> list[Fact]:
        _divided(site.shape(0)[self.axis], self.groups, "the number of channels")
        return [Fact(site.type(0))]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return ChannelShuffle(self.groups, order.index(self.axis))

    def lower(self, to: Lowering) -> None:
        x, axis = to.input(0), self.axis
        members = x.shape[axis] // self.groups
        cut = to.reshape(x, (*x.shape[:axis], self.groups, members, *x.shape[axis + 1 :]))
        order = list(range(len(cut.shape)))
        order[axis], order[axis + 1] = axis + 1, axis
        to.set(0, to.reshape(cut.permuted(order), x.shape))


def _divided(dim: Dim, by: int, what: str) -> Dim:
    if dim % by != 0:
        raise Invalid(f"{what} {dim} does not divide by {by}")
    return dim // by


@dataclass(frozen=True)
class _Blocks(Operator, abstract=True):
    """Squares of pixels of a picture and groups of its channels change places."""

    fusion: ClassVar[str] = INJECTIVE
    blocksize: int
    mode: str = "DCR"

    def image(self, site: Site) -> Shape:
        x = site.shape(0)
        if len(x) != 4 or self.blocksize < 1:
            raise Invalid(f"x {site.type(0)} must have rank 4 and the block size {self.blocksize} be positive")
        if self.mode not in ("DCR", "CRD"):
            raise Invalid(f"mode {self.mode!r} is not DCR or CRD")
        return x


@dataclass(frozen=True)
class DepthToSpace(_Blocks):
    versions = (1, 11, 13, 28)

    def infer(self, site: Site) -> list[Fact]:
        n, c, h, w = self.image(site)
        b = self.blocksize
        return [Fact(TensorType(site.type(0).dtype, (n, _divided(c, b * b, "the number of channels"), h * b, w * b)))]

    def lower(self, to: Lowering) -> None:
        n, c, h, w = to.type().shape
        b = self.blocksize
        height, width = to.input(0).shape[2:]
        if self.mode == "DCR":
            cut = to.reshape(to.input(0), (n, b, b, c, height, width)).permuted((0, 3, 4, 1, 5, 2))
        else:
            cut = to.reshape(to.input(0), (n, c, b, b, height, width)).permuted((0, 1, 4, 2, 5, 3))
        to.set(0, to.reshape(cut, (n, c, h, w)))

    def gradient(self, back: Backward) -> None:
        if self.mode == "DCR":
            back.give(0, back.op("SpaceToDepth", back.of(), blocksize=self.blocksize))
            return
        n, c, h, w = back.shape(0)
        b = self.blocksize
        cut = back.reshape(back.of(), (n, c // (b * b), h, b, w, b))
        back.give(0, back.reshape(back.transpose(cut, [0, 1, 3, 5, 2, 4]), (n, c, h, w)))


@dataclass(frozen=True)
class SpaceToDepth(_Blocks):
    versions = (1, 13, 28)

    def infer(self, site: Site) -> list[Fact]:
        n, c, h, w = self.image(site)
        b = self.blocksize
        space = _divided(h, b, "the height"), _divided(w, b, "the width")
        return [Fact(TensorType(site.type(0).dtype, (n, static(b * b) * c, *space)))]

    def lower(self, to: Lowering) -> None:
        n, c = to.input(0).shape[:2]
        b = self.blocksize
        h, w = to.type().shape[2:]
        cut = to.reshape(to.input(0), (n, c, h, b, w, b))
        order = (0, 3, 5, 1, 2, 4) if self.mode == "DCR" else (0, 1, 3, 5, 2, 4)
        to.set(0, to.reshape(cut.permuted(order), to.type().shape))

    def gradient(self, back: Backward) -> None:
        back.give(0, back.op("DepthToSpace", back.of(), blocksize=self.blocksize, mode=self.mode))
