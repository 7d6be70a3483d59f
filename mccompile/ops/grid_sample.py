"""GridSample: an image read at computed places."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.tensor import TensorType
from ..kinds.grid_sample import PADDINGS
from ..kinds.grid_sample import GridSample as GridSampleKind
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make

_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


@dataclass(frozen=True)
class GridSample(Operator):
    no_gradient = "what it reads is chosen by a grid, whose gradient is not written out"
    versions = (16, 20, 22)
    align_corners: int = 0
    mode: str = "linear"
    padding_mode: str = "zeros"

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 16:
            mode = node.attributes.get("mode", "bilinear")
            node.attributes["mode"] = _OLD_MODES.get(mode, mode)
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        x, grid = site.type(0), site.type(1)
        if self.mode not in _OLD_MODES.values() or self.padding_mode not in PADDINGS:
            raise Invalid(f"mode {self.mode!r} or padding_mode {self.padding_mode!r} is not known")
        if x.rank < 3 or grid.rank != x.rank or grid.shape[-1] != x.rank - 2 or grid.shape[0] != x.shape[0]:
            raise Invalid(f"the grid {grid} does not fit x {x}")
        if not grid.dtype.is_float:
            raise Invalid(f"the grid is {grid}, not of floats")
        if self.mode != "nearest" and not x.dtype.is_float:
            raise Unsupported(f"{self.mode} interpolation of {x.dtype}", "cast x to float before it")
        if 0 in x.shape[2:]:
            raise Invalid(f"x {x} is empty")
        return [Fact(TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1])))]

    def lower(self, to: Lowering) -> None:
        kind = GridSampleKind(self.mode, self.padding_mode, bool(self.align_corners))
        to.set(0, to.call(kind, [to.input(0), to.input(1)], to.type())[0])
