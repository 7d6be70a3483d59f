"""Random graphs: elementwise operators, moves, sums and products over a few shared values, drawn by hypothesis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Graph, Node, Op, Refused, Value
from mccompile.ops.api import resolve

LARGEST = 700  # elements of a value
UNARY = "Neg Abs Tanh Relu Sigmoid Exp HardSwish Gelu"
BINARY = "Add Sub Mul Max Min"
MOVES = "transpose reshape slice expand concat split pad unsqueeze"
SUMS = "reduce softmax matmul conv pool layernorm"


class Maker:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
        self.values = [Value("x", Fact(TensorType(f32, tuple(shape))))]
        self.graph = Graph("random", [self.values[0]])
        self.numbers = itertools.count()

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def value(self) -> Value:
        return self.values[-1 - self.integer(0, min(3, len(self.values) - 1))]

    def constant(self, array: Sequence[int] | np.ndarray) -> Value:
        found = np.asarray(array, None if isinstance(array, np.ndarray) else np.int64)
        return Value.of_constant(f"c{next(self.numbers)}", Constant.of(found))

    def floats(self, *shape: int) -> Value:
        chance = np.random.default_rng(self.integer(0, 99))
        return self.constant(chance.uniform(-1, 1, shape).astype(np.float32))

    def put(self, op: Op, *inputs: Value | None, results: int = 1) -> None:
        node = Node(op, inputs, [None] * results, (f"n{len(self.graph)}",))
        try:
            facts = op.infer(node.site())
        except Refused:
            return
        if any(not 0 < np.prod(fact.type.static_shape) <= LARGEST or fact.type.rank > 5 for fact in facts):
            return
        made = [Value(f"v{len(self.values) + number}", Fact(fact.type)) for number, fact in enumerate(facts)]
        node.outputs = list(made)
        self.graph.add(node)
        self.values += made

    def op(self, name: str, **attributes: object) -> Op:
        return resolve("", name)(**attributes)

    def grow(self) -> None:
        what = self.draw(st.sampled_from(f"{UNARY} {BINARY} {BINARY} {MOVES} {MOVES} {SUMS}".split()))
        x = self.value()
        if what in UNARY.split():
            self.put(self.op(what), x)
        elif what in BINARY.split():
            self.put(self.op(what), x, self.other(x))
        elif x.type.rank:
            getattr(self, what)(x, x.type.static_shape)

    def other(self, x: Value) -> Value:
        """Another value, or a constant that broadcasts."""
        if self.integer(0, 1):
            return self.value()
        shape = [size if self.integer(0, 1) else 1 for size in x.type.static_shape]
        return self.floats(*shape[self.integer(0, len(shape)) :])

    def transpose(self, x: Value, shape: tuple[int, ...]) -> None:
        self.put(self.op("Transpose", perm=tuple(self.draw(st.permutations(range(len(shape)))))), x)

    def reshape(self, x: Value, shape: tuple[int, ...]) -> None:
        size = int(np.prod(shape))
        first = self.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        rest = size // first
        second = self.draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
        self.put(self.op("Reshape"), x, self.constant([first, second, rest // second]))

    def unsqueeze(self, x: Value, shape: tuple[int, ...]) -> None:
        self.put(self.op("Unsqueeze"), x, self.constant([self.integer(0, len(shape))]))

    def slice(self, x: Value, shape: tuple[int, ...]) -> None:
        axis, step = self.integer(0, len(shape) - 1), self.draw(st.sampled_from([1, 2, -1, -2]))
        low, high = sorted([self.integer(0, shape[axis]), self.integer(0, shape[axis])])
        first, last = (low, high) if step > 0 else (high - 1, low - 1 if low else -99)
        self.put(self.op("Slice"), x, *(self.constant([n]) for n in (first, last, axis, step)))

    def expand(self, x: Value, shape: tuple[int, ...]) -> None:
        more = [self.integer(2, 3), *(self.integer(1, 3) if size == 1 else size for size in shape)]
        self.put(self.op("Expand"), x, self.constant(more[self.integer(0, 1) :]))

    def concat(self, x: Value, shape: tuple[int, ...]) -> None:
        alike = [v for v in self.values[-6:] if v.type == x.type]
        self.put(self.op("Concat", axis=self.integer(0, len(shape) - 1)), x, self.draw(st.sampled_from(alike)))

    def split(self, x: Value, shape: tuple[int, ...]) -> None:
        axis = self.integer(0, len(shape) - 1)
        if shape[axis] > 1:
            first = self.integer(1, shape[axis] - 1)
            self.put(self.op("Split", axis=axis), x, self.constant([first, shape[axis] - first]), results=2)

    def pad(self, x: Value, shape: tuple[int, ...]) -> None:
        pads = [self.integer(-1 if size > 1 else 0, 1) for size in shape] + [self.integer(0, 1) for _ in shape]
        self.put(self.op("Pad"), x, self.constant(pads))

    def reduce(self, x: Value, shape: tuple[int, ...]) -> None:
        axes = self.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
        name = self.draw(st.sampled_from(["ReduceMean", "ReduceMax", "ReduceSumSquare", "ReduceSum"]))
        self.put(self.op(name, keepdims=self.integer(0, 1)), x, self.constant(axes))

    def softmax(self, x: Value, shape: tuple[int, ...]) -> None:
        self.put(self.op("Softmax", axis=self.integer(0, len(shape) - 1)), x)

    def layernorm(self, x: Value, shape: tuple[int, ...]) -> None:
        axis = self.integer(0, len(shape) - 1)
        self.put(self.op("LayerNormalization", axis=axis), x, self.floats(*shape[axis:]), self.floats(*shape[axis:]))

    def matmul(self, x: Value, shape: tuple[int, ...]) -> None:
        self.put(self.op("MatMul"), x, self.floats(shape[-1], self.integer(1, 3)))

    def conv(self, x: Value, shape: tuple[int, ...]) -> None:
        if len(shape) < 3:
            return
        kernel = [self.integer(1, min(2, size)) for size in shape[2:]]
        pads = tuple(self.integer(0, 1) for _ in range(2 * len(kernel)))
        weights = self.floats(self.integer(1, 4), shape[1], *kernel)
        bias = self.floats(weights.type.static_shape[0]) if self.integer(0, 1) else None
        self.put(self.op("Conv", pads=pads), x, weights, bias)

    def pool(self, x: Value, shape: tuple[int, ...]) -> None:
        if len(shape) > 2:
            kernel = tuple(min(2, size) for size in shape[2:])
            self.put(self.op(self.draw(st.sampled_from(["MaxPool", "AveragePool"])), kernel_shape=kernel), x)


@st.composite
def graphs(draw: st.DrawFn, most: int = 10) -> Graph:
    maker = Maker(draw)
    for _ in range(draw(st.integers(1, most))):
        maker.grow()
    if len(maker.values) == 1:
        maker.put(maker.op("Neg"), maker.values[0])
    made = maker.values[1:]
    last = made[-1]
    maker.graph.outputs += [v for v in made if v is last or (not v.uses and draw(st.booleans()))]
    return maker.graph
