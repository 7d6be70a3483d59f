"""Sizes that are given before a run may be any dimension of any operator: one compiled model, many sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, numpy_helper, parser

from mccompile import backend
from mccompile.base.errors import CheckFailed, UnsupportedModel, WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.toolchain.run import Model
from tests.thorough import some

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
DIMS = {"batch": (1, 8), "time": (1, 64)}
SIZES = ((8, 64), (1, 1), (2, 7), (5, 33), (8, 3))
CHANCE = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return (CHANCE.standard_normal(shape) / np.sqrt(max(np.prod(shape[:-1]), 1))).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def graph(text: str, **weights: np.ndarray | float) -> ModelProto:
    made = parser.parse_model(f"{HEAD} g {text}")
    for name, array in weights.items():
        constant = np.float32(array) if isinstance(array, float) else array
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(constant), name))
    return made


ROWS, PLANES = "(float[batch,time,8] x)", "(float[batch,8,time] x)"
OF_ROWS, OF_PLANES = f"{ROWS} => (float[batch,o,p] y)", f"{PLANES} => (float[batch,o,p] y)"
OPERATORS = {
    "dense": graph(f"{OF_ROWS} {{ a = MatMul(x, w) b = Add(a, c) y = Relu(b) }}", w=floats(8, 6), c=floats(6)),
    "rows_by_rows": graph(f"{OF_ROWS} {{ a = Transpose<perm=[0,2,1]>(x) y = MatMul(x, a) }}"),
    "sum_over_time": graph(
        "(float[batch,time,8] x, float[time,6] v) => (float[batch,8,6] y)"
        "{ a = Transpose<perm=[0,2,1]>(x) y = MatMul(a, v) }"
    ),
    "einsum": graph(f'{OF_ROWS} {{ y = Einsum<equation="bih,bjh->bij">(x, x) }}'),
    "softmax_of_time": graph(f"{OF_PLANES} {{ y = Softmax<axis=2>(x) }}"),
    "log_softmax_of_time": graph(f"{OF_ROWS} {{ y = LogSoftmax<axis=1>(x) }}"),
    "instance_norm": graph(f"{OF_PLANES} {{ y = InstanceNormalization(x, s, b) }}", s=floats(8), b=floats(8)),
    "layer_norm": graph(f"{OF_ROWS} {{ y = LayerNormalization<axis=2>(x, s, b) }}", s=floats(8), b=floats(8)),
    "reduce": graph(
        f"{ROWS} => (float[batch,8] y, float[time,8] z, float[1,1,1] n)"
        "{ y = ReduceMean<axes=[1],keepdims=0>(x) z = ReduceMax<axes=[0],keepdims=0>(x) n = ReduceL2(x) }"
    ),
    "arg_max": graph(
        f"{ROWS} => (int64[batch,8] y, int64[batch,time] z)"
        "{ y = ArgMax<axis=1,keepdims=0>(x) z = ArgMin<axis=2,keepdims=0>(x) }"
    ),
    "cumulative": graph(f"{OF_ROWS} {{ y = CumSum<reverse=1>(x, a) }}", a=ints(1)[0]),
    "top_of_time": graph(
        f"{ROWS} => (float[batch,1,8] y, int64[batch,1,8] i, float[batch,time,3] z, int64[batch,time,3] j)"
        "{ y, i = TopK<axis=1>(x, one) z, j = TopK<axis=2>(x, three) }",
        one=ints(1), three=ints(3),
    ),
    "lstm": graph(
        "(float[time,batch,8] x) => (float[time,2,batch,6] y, float[2,batch,6] h)"
        '{ y, h, c = LSTM<hidden_size=6,direction="bidirectional">(x, w, r, b) }',
        w=floats(2, 24, 8), r=floats(2, 24, 6), b=floats(2, 48),
    ),
    "gru": graph(
        "(float[time,batch,8] x) => (float[time,1,batch,6] y) { y = GRU<hidden_size=6>(x, w, r, b) }",
        w=floats(1, 18, 8), r=floats(1, 18, 6), b=floats(1, 36),
    ),
    "conv": graph(
        f"{OF_PLANES} {{ a = Conv<pads=[1,1]>(x, w, b) y = Relu(a) }}", w=floats(6, 8, 3), b=floats(6)
    ),
    "conv_strided": graph(
        f"{OF_PLANES} {{ a = Conv<strides=[2],pads=[1,1]>(x, w) r = Relu(a) y = Conv<strides=[2],pads=[1,1]>(r, v) }}",
        w=floats(6, 8, 3), v=floats(5, 6, 3),
    ),
    "conv_causal": graph(f"{OF_PLANES} {{ y = Conv<dilations=[2],pads=[4,0]>(x, w) }}", w=floats(6, 8, 3)),
    "conv_depthwise": graph(f"{OF_PLANES} {{ y = Conv<group=8,pads=[2,2]>(x, w) }}", w=floats(8, 1, 5)),
    "conv_pictures": graph(
        "(float[batch,3,time,10] x) => (float[batch,4,o,10] y)"
        "{ a = Conv<pads=[1,1,1,1]>(x, w) y = BatchNormalization(a, s, b, m, v) }",
        w=floats(4, 3, 3, 3), s=floats(4), b=floats(4), m=floats(4), v=np.ones(4, np.float32),
    ),
    "conv_same": graph(f'{OF_PLANES} {{ y = Conv<auto_pad="SAME_UPPER">(x, w) }}', w=floats(6, 8, 3)),
    "conv_same_strided": graph(
        f"{PLANES} => (float[batch,6,o] y, float[batch,6,p] z)"
        '{ y = Conv<auto_pad="SAME_UPPER",strides=[2]>(x, w)'
        '  z = Conv<auto_pad="SAME_LOWER",strides=[3]>(x, w) }', w=floats(6, 8, 3),
    ),
    "conv_same_pictures": graph(
        "(float[batch,3,time,10] x) => (float[batch,4,o,4] y)"
        '{ y = Conv<auto_pad="SAME_UPPER",strides=[2,3]>(x, w, b) }', w=floats(4, 3, 3, 4), b=floats(4),
    ),
    "pool_same_strided": graph(
        f"{PLANES} => (float[batch,8,o] y, float[batch,8,o] z, float[batch,8,o] a, float[batch,8,p] l)"
        '{ y = MaxPool<auto_pad="SAME_LOWER",kernel_shape=[3],strides=[2]>(x)'
        '  z = AveragePool<auto_pad="SAME_UPPER",kernel_shape=[4],strides=[2]>(x)'
        '  a = AveragePool<auto_pad="SAME_UPPER",kernel_shape=[4],strides=[2],count_include_pad=1>(x)'
        '  l = LpPool<auto_pad="SAME_UPPER",kernel_shape=[3],strides=[3]>(x) }',
    ),
    "halves_of_one_size": graph(  # ceil(time / 2), counted in two ways
        f"{PLANES} => (float[batch,16,o] y) {{ a = MaxPool<kernel_shape=[1],strides=[2]>(x)"
        "  b = MaxPool<kernel_shape=[3],strides=[2],pads=[1,1]>(x) y = Concat<axis=1>(a, b) }",
    ),
    "conv_transposed": graph(f"{OF_PLANES} {{ y = ConvTranspose<strides=[2],pads=[1,1]>(x, w) }}", w=floats(8, 4, 4)),
    "pool": graph(
        f"{PLANES} => (float[batch,8,o] y, float[batch,8,p] z)"
        "{ y = MaxPool<kernel_shape=[2],strides=[2],pads=[0,1]>(x) z = AveragePool<kernel_shape=[3],pads=[1,1]>(x) }"
    ),
    "pool_many_channels": graph(
        "(float[batch,time,6,4] x) => (float[batch,time,5,3] y, float[batch,time,3,2] z, float[batch,time,1,1] a)"
        "{ y = MaxPool<kernel_shape=[2,2]>(x) z = AveragePool<kernel_shape=[2,2],strides=[2,2]>(x)"
        "  a = GlobalAveragePool(x) }"
    ),
    "pool_all": graph(
        f"{PLANES} => (float[batch,8,1] y, float[batch,8,1] z) {{ y = GlobalAveragePool(x) z = GlobalMaxPool(x) }}"
    ),
    "pool_with_places": graph(
        f"{PLANES} => (float[batch,8,o] y, int64[batch,8,o] i) {{ y, i = MaxPool<kernel_shape=[3],pads=[1,1]>(x) }}"
    ),
    "grid": graph(
        "(float[batch,2,5,6] x, float[batch,time,3,2] g) => (float[batch,2,time,3] y) { y = GridSample(x, g) }"
    ),
    "regions": graph(
        "(float[batch,2,9,9] x, float[time,4] r) => (float[time,2,2,2] y)"
        "{ a = ReduceMax<axes=[1],keepdims=0>(r) b = Mul(a, none) i = Cast<to=7>(b) c, d = Split<axis=1>(r)"
        "  from = Sigmoid(c) to = Add(from, three) q = Concat<axis=1>(from, to)"
        "  y = RoiAlign<output_height=2,output_width=2>(x, q, i) }", none=0.0, three=3.0,
    ),
    "unique": graph(
        "(int64[batch,time] x) => (int64[n] y, int64[n] i, int64[m] j, int64[n] k) { y, i, j, k = Unique(x) }"
    ),
    "pad": graph(
        f"{PLANES} => (float[batch,8,o] y, float[batch,8,o] z)"
        '{ y = Pad(x, p) z = Pad<mode="edge">(x, p) }', p=ints(0, 0, 3, 0, 0, 1),
    ),
    "resize": graph(
        "(float[batch,2,time,4] x) => (float[batch,2,o,8] y, float[batch,2,o,6] z, float[batch,2,o,4] h)"
        '{ y = Resize<mode="nearest">(x, , s) z = Resize<mode="linear">(x, , t)'
        '  h = Resize<mode="nearest",nearest_mode="floor",coordinate_transformation_mode="asymmetric">(x, , u) }',
        s=np.array([1, 1, 2, 2], np.float32), t=np.array([1, 1, 2, 1.5], np.float32),
        u=np.array([1, 1, 3, 1], np.float32),
    ),
    "lookup": graph("(int64[batch,time] x) => (float[batch,time,4] y) { y = Gather(w, x) }", w=floats(10, 4)),
    "last": graph(f"{ROWS} => (float[batch,8] y) {{ y = Gather<axis=1>(x, i) }}", i=ints(-1)[0]),
    "pick": graph(
        "(float[batch,time,8] x, int64[batch,time,8] i) => (float[batch,time,8] y, float[batch,time,8] z)"
        "{ y = GatherElements<axis=2>(x, i) z = ScatterElements<axis=2>(x, i, x) }"
    ),
    "concat": graph(f"{OF_ROWS} {{ a = Relu(x) b = Concat<axis=1>(a, x) y = Tanh(b) }}"),
    "split": graph(f"{OF_ROWS} {{ a, b = Split<axis=2>(x) c = Tanh(a) y = Concat<axis=2>(c, b) }}"),
    "slice": graph(
        f"{ROWS} => (float[batch,o,8] y, float[batch,o,8] z)"
        "{ y = Slice(x, one, end, one) z = Slice(x, m, s, one, m) }",
        one=ints(1), end=ints(1 << 40), m=ints(-1), s=ints(-(1 << 40)),
    ),
    "reversed_outside": graph(f"{ROWS} => (float[batch,time,8] y) {{ y = Slice(x, m, s, z, m) }}",
        m=ints(-1), s=ints(-(1 << 40)), z=ints(0)),
    "parts_of_a_result": graph(  # what is returned lies at an offset that depends on a size
        f"{ROWS} => (float[batch,1,8] a, float[batch,o,8] b, float[1,time,8] c)"
        "{ t = Transpose<perm=[1,0,2]>(x) r = Relu(t) l = Slice(r, m, end, zero) a = Transpose<perm=[1,0,2]>(l)"
        "  f = Slice(r, two, end, zero) b = Transpose<perm=[1,0,2]>(f) u = Relu(x) c = Slice(u, m, end, zero) }",
        m=ints(-1), end=ints(1 << 40), zero=ints(0), two=ints(2),
    ),
    "turned": graph(
        f"{ROWS} => (float[o,batch] y)"
        "{ a = Transpose<perm=[1,2,0]>(x) s = Shape(a) i = Gather(s, two)"
        "  c = Concat<axis=0>(rest, i) b = Reshape(a, c) y = Neg(b) }", two=ints(2), rest=ints(-1),
    ),
    "flat": graph(f"{ROWS} => (float[batch,o] y) {{ a = Relu(x) y = Flatten(a) }}"),
    "mask": graph(
        "(float[batch,time,time] x) => (float[batch,time,time] y)"
        "{ s = Shape(x) n = Gather(s, two) r = Range(zero, n, one) a = Unsqueeze(r, first) b = Unsqueeze(r, second)"
        "  c = Less(a, b) y = Where(c, low, x) }",
        two=ints(2)[0], zero=ints(0)[0], one=ints(1)[0], first=ints(0), second=ints(1), low=-9.0,
    ),
    "expanded": graph(f"{OF_ROWS} {{ s = Shape(x) a = Expand(w, s) y = Mul(a, x) }}", w=floats(8)),
    "anchors": graph(  # the centres of all cells, as detectors have them: sizes go through floats
        "(float[batch,2,time,5] x) => (float[o,2] y, float[p] z)"
        "{ s = Shape(x) h = Gather(s, two) w = Gather(s, three) hf = Cast<to=1>(h) wf = Cast<to=1>(w)"
        "  rx = Range(zero, wf, one) ry = Range(zero, hf, one) sx = Add(rx, half) sy = Add(ry, half)"
        "  column = Reshape(sy, down) row = Reshape(sx, across) h1 = Unsqueeze(h, first) w1 = Unsqueeze(w, first)"
        "  hw = Concat<axis=0>(h1, w1) gy = Expand(column, hw) gx = Expand(row, hw) gx1 = Unsqueeze(gx, last)"
        "  gy1 = Unsqueeze(gy, last) g = Concat<axis=-1>(gx1, gy1) y = Reshape(g, pairs)"
        "  twice = Mul(hf, double) end = Floor(twice) z = Range(one, end, double) }",
        two=ints(2)[0], three=ints(3)[0], zero=0.0, one=1.0, half=0.5, double=2.0, down=ints(-1, 1),
        across=ints(1, -1), first=ints(0), last=ints(-1), pairs=ints(-1, 2),
    ),
    "spectrogram": graph(  # as torch.stft is exported, with centred frames
        "(float[batch,time] x) => (float[batch,5,o,2] y, float[batch,p,8,2] z)"
        "{ c = Pad(x, p) s = STFT(c, step, w, length) y = Transpose<perm=[0,2,1,3]>(s)"
        "  z = STFT<onesided=0>(c, two, , length) }",
        p=ints(0, 4, 0, 4), step=ints(3)[0], two=ints(2)[0], length=ints(8)[0], w=np.hanning(8).astype(np.float32),
    ),
    "transform": graph(
        "(float[batch,time,8] x) => (float[batch,time,5,2] y, float[batch,time,8] z)"
        "{ a = Unsqueeze(x, last) y = DFT<axis=2,onesided=1>(a) f = DFT<axis=2>(a) b = DFT<axis=2,inverse=1>(f)"
        "  r, i = Split<axis=3>(b) z = Squeeze(r, last) }", last=ints(-1),
    ),
    "sizes_as_numbers": graph(
        f"{ROWS} => (int64[3] y, float z, int64 n)"
        "{ s = Shape(x) y = Mul(s, s) c = Cast<to=1>(s) z = ReduceSum<keepdims=0>(c) n = Size(x) }"
    ),
    "reversed": graph(
        "(float[time,batch,8] x, int64[batch] l) => (float[time,batch,8] y) { y = ReverseSequence(x, l) }"
    ),
    "scan": graph(
        "(float[batch,time,8] x, float[time,batch] z) => (float[batch,8] y, float[time,batch,8] c, float[batch,o,8] d)"
        "{ zero = Sub(x, x) first = ReduceSum<keepdims=0>(zero, along)"
        "  y, c, d = Scan<num_scan_inputs=2,scan_input_axes=[1,0],scan_input_directions=[1,0],"
        "    scan_output_axes=[0,1],scan_output_directions=[1,0],body=step"
        "    (float[batch,8] before, float[batch,8] slice, float[batch] weight)"
        "    => (float[batch,8] after, float[batch,8] both, float[batch,8] part)"
        "    { minus = Constant<value_ints=[-1]>() r = Constant<value_float=0.5>() w = Unsqueeze(weight, minus)"
        "      part = Mul(slice, w) half = Mul(before, r) after = Add(half, part)"
        "      both = Add(after, slice) }>(first, x, z) }",
        along=ints(1),
    ),
    "blocks": graph("(float[batch,8,time,4] x) => (float[batch,2,o,8] y) { y = DepthToSpace<blocksize=2>(x) }"),
    "lrn": graph("(float[batch,8,time,4] x) => (float[batch,8,time,4] y) { y = LRN<size=3>(x) }"),
    "quantized": graph(
        f"{OF_ROWS} {{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }}", s=0.1, z=np.array(128, np.uint8)
    ),
}  # fmt: skip


def merged(models: dict[str, ModelProto]) -> ModelProto:
    """All of them side by side in one; names of dimensions are shared, where they are given."""
    whole = ModelProto()
    for name, made in models.items():
        part = onnx.compose.add_prefix(made, f"{name}_", rename_nodes=True)
        for entry in part.graph.output:
            for number, dim in enumerate(entry.type.tensor_type.shape.dim):
                if dim.dim_param not in DIMS and not dim.dim_value:
                    dim.dim_param = f"{entry.name}_{number}"
        if whole.graph.node:
            for field in ("node", "input", "output", "initializer"):
                getattr(whole.graph, field).extend(getattr(part.graph, field))
        else:
            whole.CopyFrom(part)
    return whole


def feed(made: ModelProto, batch: int, time: int) -> dict[str, np.ndarray]:
    """Random inputs; whole numbers are positions that exist."""
    random, sizes, found = np.random.default_rng(batch * 100 + time), {"batch": batch, "time": time}, {}
    for entry in made.graph.input:
        type = entry.type.tensor_type
        shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in type.shape.dim]
        if type.elem_type == TensorProto.INT64:
            found[entry.name] = random.integers(1, {1: time + 1, 2: 10, 3: 8}[len(shape)], shape)
        else:
            found[entry.name] = random.standard_normal(shape).astype(np.float32)
    return found


def compare(names: Sequence[str], got: Sequence[np.ndarray], want: Sequence[np.ndarray], tolerance: float) -> None:
    for name, mine, theirs in zip(names, got, want, strict=True):
        assert mine.shape == theirs.shape, name
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance / 10, err_msg=name)


@some(1, "target", ["generic", "native"])
def test_every_operator_takes_sizes_at_run_time(target: str) -> None:
    made = merged(OPERATORS)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    flags = STRICT if target == "generic" else ("-O1", "-march=native")
    rep = backend.prepare(made, flags=flags, dims=DIMS, target=target)
    names = [output.name for output in made.graph.output]
    for batch, time in SIZES:
        inputs = feed(made, batch, time)
        compare(names, rep.run(inputs), session.run(None, inputs), 1e-4)


def test_a_size_that_is_a_product_wraps_as_a_whole() -> None:
    made = graph('(float[time,2] x) => (float[o,2] y) { a = Concat<axis=0>(x, x, x) y = Pad<mode="wrap">(a, p) }',
                 p=ints(2, 0, 1, 0))  # fmt: skip
    made.opset_import[0].version = 19
    rep = backend.prepare(made, flags=STRICT, dims={"time": (1, 5)})
    for time in (1, 2, 5):
        x = floats(time, 2)
        assert np.array_equal(rep.run([x])[0], np.pad(np.tile(x, (3, 1)), ((2, 1), (0, 0)), mode="wrap"))


NETWORKS = {
    "transformer": graph(
        "(float[batch,time,16] x) => (float[batch,time,16] y)"
        "{ n = LayerNormalization(x, s, b) q0 = MatMul(n, wq) k0 = MatMul(n, wk) v0 = MatMul(n, wv)"
        "  q1 = Reshape(q0, heads) k1 = Reshape(k0, heads) v1 = Reshape(v0, heads)"
        "  q = Transpose<perm=[0,2,1,3]>(q1) k = Transpose<perm=[0,2,3,1]>(k1) v = Transpose<perm=[0,2,1,3]>(v1)"
        "  a0 = MatMul(q, k) a1 = Mul(a0, half) a = Softmax(a1) c0 = MatMul(a, v) c1 = Transpose<perm=[0,2,1,3]>(c0)"
        "  c = Reshape(c1, back) o = MatMul(c, wo) r = Add(o, x) m = LayerNormalization(r, s, b)"
        "  f = MatMul(m, w1) g = Relu(f) h = MatMul(g, w2) y = Add(h, r) }",
        s=np.ones(16, np.float32), b=floats(16), wq=floats(16, 16), wk=floats(16, 16), wv=floats(16, 16),
        wo=floats(16, 16), w1=floats(16, 32), w2=floats(32, 16), heads=ints(0, 0, 4, 4), back=ints(0, 0, 16), half=0.5,
    ),
    "speech": graph(
        "(float[batch,8,time] x) => (float[batch,o,12] y)"
        "{ a = Conv<pads=[2,2],strides=[2]>(x, w1, b1) b = Relu(a) c = Conv<pads=[1,1],group=12>(b, w2) d = Relu(c)"
        "  e = Transpose<perm=[2,0,1]>(d) h, n = GRU<hidden_size=6,direction=\"bidirectional\">(e, wg, rg)"
        "  k = Transpose<perm=[2,0,1,3]>(h) y = Reshape(k, joined) }",
        w1=floats(12, 8, 5), b1=floats(12), w2=floats(12, 1, 3), wg=floats(2, 18, 12), rg=floats(2, 18, 6),
        joined=ints(0, 0, 12),
    ),
    "text": graph(
        "(int64[batch,time] x) => (float[batch,3] y)"
        "{ e = Gather(table, x) t = Transpose<perm=[1,0,2]>(e) s, h, c = LSTM<hidden_size=8>(t, w, r, b)"
        "  l = Squeeze(h, zero) g = Gemm(l, v, u) y = Softmax(g) }",
        table=floats(10, 6), w=floats(1, 32, 6), r=floats(1, 32, 8), b=floats(1, 64), zero=ints(0), v=floats(8, 3),
        u=floats(3),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def network() -> ModelProto:
    return merged(NETWORKS)


@pytest.fixture(scope="module")
def built(network: ModelProto, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return build(network, tmp_path_factory.mktemp("sizes"), DIMS)


def build(made: ModelProto, folder: Path, dims: dict[str, tuple[int, int]]) -> Model:
    compile_graph(load_proto(made, dims=dims), Options(), "network").write(folder / "out")
    return Model.build(folder / "out", flags=STRICT)


@pytest.mark.thorough
def test_one_compiled_model_answers_as_eight_static_ones(network: ModelProto, built: Model) -> None:
    made = network
    session = onnxruntime.InferenceSession(made.SerializeToString())
    names = [output.name for output in made.graph.output]
    for batch, time in ((1, 64), (2, 1), (3, 17), (4, 32), (5, 63), (6, 2), (7, 40), (8, 64)):
        inputs = feed(made, batch, time)
        static = backend.prepare(made, flags=("-O1",), dims={"batch": (batch, batch), "time": (time, time)})
        results = built.run(inputs)
        got = [results[name] for name in names]
        compare(names, got, static.run(inputs), 2e-6)
        compare(names, got, session.run(None, inputs), 1e-4)


@pytest.mark.parametrize(("batch", "time"), [(0, 5), (9, 5), (-1, 5), (8, 65), (8, 0), (8, -1)])
def test_sizes_outside_the_bounds_are_refused(built: Model, batch: int, time: int) -> None:
    with pytest.raises(CheckFailed, match="outside the bounds"):
        built.resize({"n_batch": batch, "n_time": time})


def test_sizes_for_which_a_tensor_would_be_negative_are_refused(tmp_path: Path) -> None:
    made = graph(
        "(float[batch,3,time] x) => (float[batch,3,o] y, float[batch,3,2] z, int64[batch,3,2] i, float[batch,3,p] s)"
        "{ y = Conv(x, w) z, i = TopK<axis=2>(x, two) s = Pad(x, p) }",
        w=floats(3, 3, 5), two=ints(2), p=ints(0, 0, -1, 0, 0, -2),
    )  # fmt: skip
    model = build(made, tmp_path, DIMS)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    names = [output.name for output in made.graph.output]
    for time in (64, 5, 6):
        inputs = feed(made, 2, time)
        results = model.run(inputs)
        compare(names, [results[name] for name in names], session.run(None, inputs), 1e-4)
    for time in (1, 2, 3):
        with pytest.raises(CheckFailed, match="outside the bounds"):
            model.run(feed(made, 2, time))


def test_joined_sizes_that_are_equal_at_times_are_checked(tmp_path: Path) -> None:
    """A network that halves and doubles takes even sizes; an odd one is refused before anything is written."""
    made = graph(
        "(float[batch,3,time] x) => (float[batch,6,o] y)"
        "{ a = MaxPool<kernel_shape=[2],strides=[2]>(x) b = Resize<mode=\"nearest\">(a, , s) c = Concat<axis=1>(x, b)"
        "  y = Relu(c) }", s=np.array([1, 1, 2], np.float32),
    )  # fmt: skip
    model = build(made, tmp_path, {"batch": (1, 2), "time": (2, 9)})
    session = onnxruntime.InferenceSession(made.SerializeToString())
    for time in (8, 2, 6):
        inputs = feed(made, 2, time)
        compare(["y"], [model.run(inputs)["y"]], session.run(None, inputs), 1e-6)
    for time in (9, 3):
        with pytest.raises(CheckFailed, match="outside the bounds"):
            model.run(feed(made, 2, time))


def test_a_size_may_be_given_as_a_multiple(tmp_path: Path) -> None:
    made = graph("(float[?,?] x) => (float[?,?] y) { y = Relu(x) }")
    loaded = load_proto(made, shapes={"x": ("batch", "32*n")}, dims={"batch": (1, 1), "n": (1, 3)})
    assert [str(dim) for dim in loaded.inputs[0].type.shape] == ["1", "32*n_n"]


def test_exporters_write_arithmetic_over_names(tmp_path: Path) -> None:
    """`2*time + 1` is a size where `time` is one; an input may have the first and not the second."""
    made = graph("(float[batch,a] x, float[batch,b] z) => (float[batch,o] y) { w = Concat<axis=1>(x, z) y = Relu(w) }")
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "2*time + 1"
    made.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "time//2"
    model = build(made, tmp_path, {"batch": (1, 4), "time": (2, 9)})
    random = np.random.default_rng(1)
    for batch, time in ((4, 9), (1, 2), (3, 4)):
        x, z = (random.standard_normal((batch, size)).astype(np.float32) for size in (2 * time + 1, time // 2))
        np.testing.assert_array_equal(model.run({"x": x, "z": z})["y"], np.maximum(np.concatenate([x, z], 1), 0))
    with pytest.raises(WrongUse, match="do not fit each other"):
        model.run({"x": np.zeros((1, 9), np.float32), "z": np.zeros((1, 1), np.float32)})
    with pytest.raises(UnsupportedModel, match="add --dim time=1"):
        load_proto(made, dims={"batch": (1, 4)})


def test_dimensions_without_a_name_get_one_from_the_user() -> None:
    made = graph("(float[?,8] x, float[?,8] z) => (float[?,8] y) { y = Add(x, z) }")
    options = {"shapes": {"x": ("batch", 8), "z": ("batch", 8)}, "dims": {"batch": (1, 4)}}
    rep = backend.prepare(made, flags=STRICT, **options)
    for batch in (1, 4, 2):
        x = np.full((batch, 8), batch, np.float32)
        np.testing.assert_array_equal(rep.run({"x": x, "z": x})[0], x + x)


def test_parts_of_a_free_size_are_as_large_as_that_allows() -> None:
    made = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (float[time,8] x) => (float[a,8] y, float[b,8] z)'
        "{ r = Relu(x) y, z = Split<num_outputs=2>(r) }"
    )
    rep = backend.prepare(made, flags=STRICT, dims={"time": (0, 6)})
    for time in range(7):
        x = floats(time, 8)
        y, z = rep.run({"x": x})
        np.testing.assert_array_equal(np.concatenate([y, z]), np.maximum(x, 0))
        assert len(y) == (time + 1) // 2


def test_windows_with_gaps_are_padded_as_with_sizes_that_are_known() -> None:
    made = graph(
        f"{PLANES} => (float[batch,8,o] y)"
        '{ y = MaxPool<auto_pad="SAME_UPPER",kernel_shape=[3],strides=[2],dilations=[2]>(x) }'
    )
    rep = backend.prepare(made, flags=STRICT, dims={"batch": (1, 2), "time": (1, 9)})
    for time in (9, 4, 2):
        fixed = backend.prepare(made, flags=STRICT, dims={"batch": (1, 1), "time": (time, time)})
        inputs = feed(made, 1, time)
        np.testing.assert_array_equal(rep.run(inputs)[0], fixed.run(inputs)[0])
