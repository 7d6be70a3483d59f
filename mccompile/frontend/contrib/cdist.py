"""CDist: the distances between the rows of two matrices."""

from __future__ import annotations

from ...graph.ir import Unsupported
from ..composed_body import Body
from ..contributed import writes


@writes(
    "CDist",
    'g (float[5, 4] a, float[3, 4] b) => (float[5, 3] y) { y = com.microsoft.CDist <metric = "euclidean"> (a, b) }',
    "g (float[2, 7] a, float[6, 7] b) => (float[2, 6] y) { y = com.microsoft.CDist (a, b) }",
)
def cdist(body: Body) -> None:
    body.only("metric")
    metric = str(body.attribute("metric", "sqeuclidean"))
    if metric not in ("euclidean", "sqeuclidean"):
        raise Unsupported(f"metric {metric!r}", "export the model with the operators that it stands for")
    rows, columns = (body.op("Unsqueeze", body.operand(i), body.ints(1 - i)) for i in range(2))
    apart = body.op("Sub", rows, columns)
    total = body.op("ReduceSum", body.op("Mul", apart, apart), body.ints(2), keepdims=0)
    body.give(0, body.op("Sqrt", total) if metric == "euclidean" else total)
