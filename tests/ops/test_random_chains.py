"""Random graphs of operators that move data: views of views, parts of parts, results written over operands.

What each should give is worked out in numpy while the graph is made.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mccompile import backend
from tests.thorough import some

LARGEST = 2000  # elements


class Chain:
    """A graph in the making, and the arrays that its values stand for."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        shape = self.random.integers(1, 6, self.random.integers(1, 5))
        self.values = {"x": self.random.standard_normal(shape).astype(np.float32)}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def grow(self) -> None:
        name = list(self.values)[-1 if self.random.random() < 0.6 else self.random.integers(len(self.values))]
        steps = [
            self.transpose, self.slice, self.reshape, self.concat, self.split, self.pad, self.tile, self.expand,
            self.gather, self.gather_elements, self.scatter, self.negate, self.add,
        ]  # fmt: skip
        steps[self.random.integers(len(steps))](name, self.values[name])

    def put(self, op: str, ins: list[str | np.ndarray], results: list[np.ndarray], **attributes: object) -> None:
        if any(not 0 < result.size <= LARGEST or result.ndim > 5 for result in results):
            return
        names = []
        for operand in ins:
            if isinstance(operand, np.ndarray):
                self.constants.append(numpy_helper.from_array(operand, f"c{len(self.constants)}"))
            names.append(self.constants[-1].name if isinstance(operand, np.ndarray) else operand)
        outs = [f"v{len(self.values) + number}" for number in range(len(results))]
        self.nodes.append(helper.make_node(op, names, outs, **attributes))
        self.values |= dict(zip(outs, results, strict=True))

    def axis(self, x: np.ndarray) -> int:
        return int(self.random.integers(x.ndim))

    def like(self, x: np.ndarray) -> tuple[str, np.ndarray]:
        """Some value of the same shape."""
        found = [(name, value) for name, value in self.values.items() if value.shape == x.shape]
        return found[self.random.integers(len(found))]

    def transpose(self, name: str, x: np.ndarray) -> None:
        perm = self.random.permutation(x.ndim)
        self.put("Transpose", [name], [x.transpose(perm)], perm=perm.tolist())

    def slice(self, name: str, x: np.ndarray) -> None:
        axis, step = self.axis(x), int(self.random.choice([1, 2, -1, -2]))
        first, last = sorted(self.random.integers(0, x.shape[axis] + 1, 2).tolist(), reverse=step < 0)
        part = x.take(range(min(first, x.shape[axis] - 1), last, step), axis)
        self.put("Slice", [name, *(np.array([value]) for value in (first, last, axis, step))], [part])

    def reshape(self, name: str, x: np.ndarray) -> None:
        divisors = [d for d in range(1, x.size + 1) if x.size % d == 0]
        shape = (int(self.random.choice(divisors)), -1)
        self.put("Reshape", [name, np.array(shape)], [x.reshape(shape)])

    def concat(self, name: str, x: np.ndarray) -> None:
        axis, (other, y) = self.axis(x), self.like(x)
        self.put("Concat", [name, other, name], [np.concatenate([x, y, x], axis)], axis=axis)

    def split(self, name: str, x: np.ndarray) -> None:
        axis = self.axis(x)
        first = int(self.random.integers(x.shape[axis])) or 1
        sizes = np.array([first, x.shape[axis] - first])
        self.put("Split", [name, sizes], np.split(x, [first], axis), axis=axis)

    def pad(self, name: str, x: np.ndarray) -> None:
        mode = str(self.random.choice(["constant", "edge", "reflect"]))
        before, after = (np.minimum(self.random.integers(0, 3, x.ndim), np.array(x.shape) - 1) for _ in range(2))
        result = np.pad(x, list(zip(before, after, strict=True)), mode)
        self.put("Pad", [name, np.concatenate([before, after])], [result], mode=mode)

    def tile(self, name: str, x: np.ndarray) -> None:
        repeats = self.random.integers(1, 3, x.ndim)
        self.put("Tile", [name, repeats], [np.tile(x, repeats)])

    def expand(self, name: str, x: np.ndarray) -> None:
        shape = np.array([2, *(3 if dim == 1 else dim for dim in x.shape)])
        self.put("Expand", [name, shape], [np.broadcast_to(x, shape)])

    def gather(self, name: str, x: np.ndarray) -> None:
        axis = self.axis(x)
        indices = self.random.integers(-x.shape[axis], x.shape[axis], self.random.integers(1, 3, self.axis(x)))
        self.put("Gather", [name, indices], [x.take(indices, axis)], axis=axis)

    def gather_elements(self, name: str, x: np.ndarray) -> None:
        axis = self.axis(x)
        indices = self.random.integers(0, x.shape[axis], x.shape)
        self.put("GatherElements", [name, indices], [np.take_along_axis(x, indices, axis)], axis=axis)

    def scatter(self, name: str, x: np.ndarray) -> None:
        axis, (other, y) = self.axis(x), self.like(x)
        order = self.random.random(x.shape).argsort(axis)
        result = x.copy()
        np.put_along_axis(result, order, y, axis)
        self.put("ScatterElements", [name, order, other], [result], axis=axis)

    def negate(self, name: str, x: np.ndarray) -> None:
        self.put("Neg", [name], [-x])

    def add(self, name: str, x: np.ndarray) -> None:
        other, y = self.like(x)
        self.put("Add", [name, other], [x + y])

    def model(self, outputs: list[str]) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.values["x"].shape)]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.values[name].shape) for name in outputs]
        graph = helper.make_graph(self.nodes, "chain", inputs, results, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@some(5, "seed", range(16))
def test_every_value_is_where_it_should_be(seed: int) -> None:
    chain = Chain(seed)
    while len(chain.values) < 16:
        chain.grow()
    made = list(chain.values)[1:]
    outputs = [name for name in made if name == made[-1] or chain.random.random() < 0.3]
    results = backend.prepare(chain.model(outputs)).run([chain.values["x"]])
    for name, result in zip(outputs, results, strict=True):
        np.testing.assert_allclose(result, chain.values[name], rtol=1e-5, atol=1e-6, err_msg=name)
