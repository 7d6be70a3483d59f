"""The product with weights of few bits, an operator that no ONNX model has: block_products makes it out of
DequantizeLinear and the product behind it, however that is spelled."""

from __future__ import annotations

from ..base.dims import ceil_div, product, static
from ..base.dtypes import f32, i8, u8
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import cast, operand
from ..kinds.block_gemm import BlockGemm
from ..program.ir import View
from .api import ANCHOR, Fact, Invalid, Lowering, Operator, Site
from .matmul import product_shape

LONGEST = 128  # elements of a sum that are added up before anything else is: so rounding errors stay small


@dataclass(frozen=True)
class BlockMatMul(Operator):
    """a @ ((w - zero) * scale): operands a, constant matrix w, its scales, its zero points. Sums run along `axis` of w,
    and blocks of `block` along it have a scale and a zero point each, which lie as their blocks do; 0: there is one for
    each column of the product."""

    domain = "mccompile"
    fusion = ANCHOR
    axis: int = 0
    block: int = 0
    rounds: bool = False  # may a be rounded to int8?

    def infer(self, site: Site) -> list[Fact]:
        a, w, scale = (site.type(i) for i in range(3))
        if not a.dtype.is_float or not w.dtype.is_integer or w.dtype.bits > 8 or w.rank != 2 or scale.dtype is not f32:
            raise Invalid(f"a is {a}, w is {w}, the scales are {scale}")
        depth, columns = w.shape[self.axis], w.shape[1 - self.axis]
        blocks = (ceil_div(depth, self.block), columns) if self.block else (1, columns)
        if scale.shape != (blocks if self.axis == 0 else blocks[::-1]):
            raise Invalid(f"the scales are {scale} for {w} in blocks of {self.block} along axis {self.axis}")
        if site.has(3) and site.type(3) != TensorType(i8 if w.dtype.kind == "int" else u8, scale.shape):
            raise Invalid(f"the zero points are {site.type(3)} beside scales {scale}")
        return [Fact(TensorType(a.dtype, product_shape(a.shape, (depth, columns))))]

    def lower(self, to: Lowering) -> None:
        a, type = to.input(0), to.type()
        w, *blocks = (self.along(to.input(i)) for i in range(1, 4) if to.has(i))
        depth, columns = static(w.shape[0]), w.shape[1]
        block = self.block or min(depth, LONGEST)
        blocks = [view.broadcast_to((ceil_div(depth, block), columns)) for view in blocks]
        rows = product(a.shape[:-1])
        epilogue = None if type.dtype is f32 else cast(operand(0, f32), type.dtype)
        kind = BlockGemm(block, len(blocks) > 1, epilogue, self.rounds)
        ins = [to.reshape(a, (rows, depth)), w, *blocks]
        made = to.call(kind, ins, TensorType(type.dtype, (rows, columns)))[0]
        to.set(0, to.reshape(made, type.shape))

    def along(self, view: View) -> View:
        """With the sums along axis 0."""
        return view if self.axis == 0 else view.permuted((1, 0))
