"""RoiAlign: regions of images, pooled over bins whose corners need not lie on elements."""

from __future__ import annotations

from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.roi_align import RoiAlign as RoiAlignKind
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, make


@dataclass(frozen=True)
class RoiAlign(Operator):
    no_gradient = "what it reads is chosen by regions, whose gradient is not written out"
    versions = (10, 16, 22)
    coordinate_transformation_mode: str = "half_pixel"
    mode: str = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 10:
            node.attributes["coordinate_transformation_mode"] = "output_half_pixel"
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        x, rois, batches = (site.type(i) for i in range(3))
        modes = ("half_pixel", "output_half_pixel")
        if self.mode not in ("avg", "max") or self.coordinate_transformation_mode not in modes:
            raise Invalid(f"mode {self.mode!r} or {self.coordinate_transformation_mode!r} is not known")
        if x.rank != 4 or rois.rank != 2 or rois.shape[1] != 4 or batches != TensorType(i64, rois.shape[:1]):
            raise Invalid(f"the rois {rois} and batch_indices {batches} do not fit x {x}")
        if not x.dtype.is_float or rois.dtype is not x.dtype or 0 in x.shape:
            raise Invalid(f"x {x} and the rois {rois} must be floats of one type, and x not empty")
        if min(self.output_height, self.output_width) < 1 or self.sampling_ratio < 0:
            raise Invalid(f"{self.output_height} x {self.output_width} bins with sampling {self.sampling_ratio}")
        return [Fact(TensorType(x.dtype, (rois.shape[0], x.shape[1], self.output_height, self.output_width)))]

    def lower(self, to: Lowering) -> None:
        half_pixel = self.coordinate_transformation_mode == "half_pixel"
        bins = self.output_height, self.output_width
        kind = RoiAlignKind(*bins, self.sampling_ratio, self.spatial_scale, half_pixel, self.mode == "max")
        to.set(0, to.call(kind, [to.input(i) for i in range(3)], to.type())[0])
