"""onnxruntime's operators of transformers, in the forms that its optimiser and model builders write."""

from __future__ import annotations

import numpy as np

from tests.decoders import decoder

from .net import Net, f, ints
from .spelling import spelled

HEADS, WIDTH, LONG = 2, 8, 5
MASKS: dict[str, np.ndarray] = {
    "none": np.zeros(0, np.int32),
    "lengths": np.array([3, 5], np.int32),
    "ends_and_starts": np.array([4, 5, 1, 0], np.int32),
    "of_keys": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
    "negative": np.array([[1, 1, -1, 0, 2], [-1, 1, 1, 1, -3]], np.int32),
    "nothing": np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 0]], np.int32),
    "of_pairs": np.tril(np.ones((2, 5, 5), np.int32)),
    "one": np.array([[1], [1]], np.int32),
    "zero": np.array([[0], [0]], np.int32),
    "single": np.array([[1]], np.int32),
    "single_zero": np.array([[0]], np.int32),
}


@spelled(
    "attention/masks", *({"mask": name} for name in MASKS), *({"mask": name, "back": 1} for name in MASKS), steps=1,
    room=1.03,  # lengths are spread to a mask
)  # fmt: skip
def attention(net: Net, mask: str, back: int = 0) -> str:
    x = net.input(net.floats(2, LONG, WIDTH))
    given = net.input(MASKS[mask], "mask") if MASKS[mask].size else ""
    weights = net.floats(WIDTH, 3 * WIDTH), net.floats(3 * WIDTH)
    return net.ms("Attention", x, *weights, given, num_heads=HEADS, unidirectional=back)


@spelled(
    "attention/past", {"length": 3}, {"length": 3, "mask": 1}, {"length": 3, "free": 1},
    {"length": 3, "free": 1, "mask": 1}, {"length": 0, "free": 1}, steps=None, room=99,
)  # fmt: skip
def attention_with_past(net: Net, length: int, mask: int = 0, free: int = 0) -> list[str]:
    x = net.input(net.floats(2, 2, WIDTH))
    past = net.floats(2, 2, HEADS, length, WIDTH // HEADS)
    total = 2 + length
    keys = net.input(past, "past", (2, 2, HEADS, "past" if free else length, WIDTH // HEADS))
    if free:
        net.dims = {"past": (0, 7)}
    shape = (2, "past + 2" if free else total)
    ones = np.ones((2, total), np.int32)
    ones[0, 0] = 0
    given = net.input(ones, "mask", shape) if mask else ""
    weights = net.floats(WIDTH, 3 * WIDTH), net.floats(3 * WIDTH)
    made = net.ms("Attention", x, *weights, given, keys, outs=2, num_heads=HEADS, unidirectional=1)
    return [made, f"{made}.1"]


@spelled("attention/bias", {"rows": 1}, {"rows": 2}, room=1.2)
def attention_with_bias(net: Net, rows: int) -> str:
    x = net.input(net.floats(2, LONG, WIDTH))
    bias = net.input(net.floats(rows, HEADS, LONG, LONG), "bias")
    weights = net.floats(WIDTH, 3 * WIDTH), net.floats(3 * WIDTH)
    return net.ms("Attention", x, *weights, "", "", bias, num_heads=HEADS)


@spelled("attention/scale", {"scale": 0.3}, {"scale": 0.0}, {"sizes": [8, 8, 16]}, room=1.5)
def attention_with_scale(net: Net, scale: float = 0.0, sizes: list[int] | None = None) -> str:
    x = net.input(net.floats(2, LONG, WIDTH))
    total = sum(sizes or [24])
    more = {"qkv_hidden_sizes": sizes} if sizes else {}
    return net.ms("Attention", x, net.floats(WIDTH, total), net.floats(total), num_heads=HEADS, scale=scale, **more)


def three(net: Net, keys: int = LONG, width: int = WIDTH) -> list[str]:
    return [net.input(net.floats(2, n, width)) for n in (LONG, keys, keys)]


MULTI_MASKS = {
    "none": np.zeros(0, np.int32),
    "lengths": np.array([3, 5], np.int32),
    "of_keys": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
    "negative": np.array([[1, 1, -1, 0, 2], [-1, 1, 1, 1, -3]], np.int32),
    "nothing": np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 0]], np.int32),
    "of_pairs": np.tril(np.ones((2, 5, 5), np.int32)),
    "ends_and_starts": np.array([3, 5, 0, 5, 10, 0, 5, 10], np.int32),
}


@spelled(
    "multi_head/masks", *({"mask": name} for name in MULTI_MASKS), *({"mask": name, "back": 1} for name in MULTI_MASKS),
    steps=None, room=1.2,
)  # fmt: skip
def multi_head(net: Net, mask: str, back: int = 0) -> str:
    sides = three(net)
    given = net.input(MULTI_MASKS[mask], "mask") if MULTI_MASKS[mask].size else ""
    return net.ms("MultiHeadAttention", *sides, "", given, num_heads=HEADS, unidirectional=back)


def packed(net: Net, count: int, long: int, pack: bool, bias: int) -> str:
    """Queries, keys and values, the last `count` of which come in one array."""
    arrays = [net.floats(2, LONG if number == 0 else long, HEADS, WIDTH // HEADS) for number in range(3)]
    apart, joined = arrays[: 3 - count], np.stack(arrays[3 - count :], 3)
    sides = [net.input(array.reshape(*array.shape[:2], WIDTH)) for array in apart]
    if pack:
        sides = [*sides, net.input(joined), *[""] * (count - 1)]
    else:
        whole = net.input(joined)
        parts = (net.op("Gather", whole, np.array(number, np.int64), axis=3) for number in range(count))
        sides += [net.op("Reshape", part, ints(0, 0, -1)) for part in parts]
    return net.ms("MultiHeadAttention", *sides, net.floats(3 * WIDTH) if bias else "", num_heads=HEADS)


@spelled("multi_head/packed", {"bias": 0})
@spelled("multi_head/packed_with_bias", {"bias": 1})
def all_apart(net: Net, bias: int) -> str:
    return packed(net, 3, LONG, False, bias)


@spelled("multi_head/packed", {"bias": 0}, unknown=True)
@spelled("multi_head/packed_with_bias", {"bias": 1}, unknown=True)
def all_in_one(net: Net, bias: int) -> str:
    return packed(net, 3, LONG, True, bias)


@spelled("multi_head/packed_keys")
def keys_apart(net: Net) -> str:
    return packed(net, 2, 7, False, 0)


@spelled("multi_head/packed_keys", unknown=True)
def keys_and_values_in_one(net: Net) -> str:
    return packed(net, 2, 7, True, 0)


@spelled("multi_head/cross", {"bias": 0}, steps=None)
@spelled("multi_head/cross_biased", {"bias": 1}, steps=None)
def other_keys(net: Net, bias: int) -> str:
    return net.ms("MultiHeadAttention", *three(net, 7), net.floats(3 * WIDTH) if bias else "", num_heads=HEADS)


@spelled("multi_head/cross4")
def keys_that_are_cut(net: Net) -> str:
    query = net.input(net.floats(2, LONG, WIDTH))
    sides = [net.input(net.floats(2, HEADS, 7, WIDTH // HEADS)) for _ in range(2)]
    return net.ms("MultiHeadAttention", query, *sides, num_heads=HEADS)


@spelled("multi_head/bias", {"shape": (1, HEADS, LONG, LONG)}, {"shape": (2, HEADS, LONG, LONG)}, {"shape": (1, 1, LONG, LONG)}, {"shape": (2, 1, LONG, LONG)}, steps=None)  # fmt: skip  # noqa: E501
def bias_of_scores(net: Net, shape: tuple[int, ...]) -> str:
    sides = three(net)
    bias = net.input(net.floats(*shape), "bias")
    return net.ms("MultiHeadAttention", *sides, "", "", bias, num_heads=HEADS)


@spelled(
    "multi_head/past", {}, {"mask": 1}, {"back": 1}, {"free": 1}, {"free": 1, "mask": 1}, {"free": 1, "back": 1},
    {"free": 1, "length": 0}, {"bias": 1}, steps=None, room=99,
)  # fmt: skip
def multi_head_with_past(
    net: Net, mask: int = 0, back: int = 0, free: int = 0, length: int = 3, bias: int = 0
) -> list[str]:
    sides = [net.input(net.floats(2, 2, WIDTH)) for _ in range(3)]
    shape = (2, HEADS, "past" if free else length, WIDTH // HEADS)
    past = [net.input(net.floats(2, HEADS, length, WIDTH // HEADS), name, shape) for name in ("pk", "pv")]
    if free:
        net.dims = {"past": (0, 7)}
    total = 2 + length
    ones = np.ones((2, total), np.int32)
    ones[0, 0] = 0
    given = net.input(ones, "mask", (2, "past + 2" if free else total)) if mask else ""
    biased = net.floats(3 * WIDTH) if bias else ""
    made = net.ms("MultiHeadAttention", *sides, biased, given, "", *past, outs=3, num_heads=HEADS, unidirectional=back)
    return [made, f"{made}.1", f"{made}.2"]


@spelled("multi_head/present", steps=None)
def present_without_past(net: Net) -> list[str]:
    made = net.ms("MultiHeadAttention", *three(net), outs=3, num_heads=HEADS)
    return [made, f"{made}.1", f"{made}.2"]


def cache(net: Net, size: int = 16, length: int = 12) -> tuple[str, str]:
    angles = np.arange(length)[:, None] / 100.0 ** (np.arange(size // 2) / (size // 2))
    return net.constant(np.cos(angles).astype(np.float32)), net.constant(np.sin(angles).astype(np.float32))


@spelled(
    "rotary/forms", {"rank": 3}, {"rank": 4}, {"rank": 3, "first": 1}, {"rank": 3, "interleaved": 1},
    {"rank": 4, "interleaved": 1, "first": 1}, {"rank": 3, "heads": 2, "part": 8}, {"rank": 4, "part": 8, "heads": 2},
    {"rank": 4, "part": 8, "heads": 2, "free": 1}, {"rank": 3, "free": 1}, {"rank": 3, "free": 1, "first": 1},
    {"rank": 3, "scale": 1.0},
    steps=None, room=99,
)  # fmt: skip
def rotary(
    net: Net, rank: int, first: int = 0, interleaved: int = 0, heads: int = 0, part: int = 0, free: int = 0,
    scale: float = 0.0,
) -> str:  # fmt: skip
    size = 16
    shape: tuple[int, ...] = (2, LONG, 2 * size) if rank == 3 else (2, 2, LONG, size)
    declared = tuple("long" if dim == LONG else dim for dim in shape) if free else shape
    if free:
        net.dims = {"long": (1, 9)}
    x = net.input(net.floats(*shape), "x", declared)
    where = ints(3) if first else (np.arange(2 * LONG).reshape(2, LONG) % 7).astype(np.int64)
    positions = net.input(where, "p", (2, "long") if free and not first else where.shape)
    more = {"num_heads": heads, "rotary_embedding_dim": part} if part else {}
    if scale:
        more["scale"] = scale
    return net.ms("RotaryEmbedding", x, positions, *cache(net, part or size), interleaved=interleaved, **more)


@spelled(
    "grouped/forms", {}, {"packed": 1}, {"rotary": 1}, {"rotary": 1, "packed": 1}, {"window": 3}, {"cap": 5.0},
    {"smooth": 1}, {"length": 1, "past": 6}, {"length": 1, "past": 6, "rotary": 1},
    {"length": 1, "past": 6, "free": 1}, {"length": 1, "past": 6, "free": 1, "rotary": 1},
    {"length": 4, "past": 0, "free": 1}, {"length": 1, "past": 6, "free": 1, "window": 3},
    steps=None, room=99, close=2e-4,
)  # fmt: skip
def grouped(
    net: Net, packed: int = 0, rotary: int = 0, window: int = -1, cap: float = 0.0, smooth: int = 0, length: int = 4,
    past: int = 0, free: int = 0,
) -> list[str]:  # fmt: skip
    heads, groups, size = 4, 2, 16
    widths = [heads * size, groups * size, groups * size]
    if packed:
        sides = [net.input(net.floats(2, length, sum(widths))), "", ""]
    else:
        sides = [net.input(net.floats(2, length, width)) for width in widths]
    shape = (2, groups, "past" if free else past, size)
    kept = [net.input(net.floats(2, groups, past, size), name, shape) for name in ("pk", "pv")]
    total = past + length
    last = net.input(np.full((2, 1), total - 1, np.int32), "last")
    if free:
        net.dims = {"past": (0, 7), "total": (length, 7 + length)}
        whole = net.input(np.ones((2, total), np.int64), "mask", (2, "total"))
        size_of = net.op("Gather", net.op("Shape", whole), np.array(1, np.int64), axis=0)
        many = net.op("Cast", size_of, to=6)
    else:
        many = net.constant(np.array(total, np.int32))
    caches = cache(net, size) if rotary else ("", "")
    made = net.ms(
        "GroupQueryAttention", *sides, *kept, last, many, *caches, outs=3, num_heads=heads, kv_num_heads=groups,
        do_rotary=rotary, local_window_size=window, softcap=cap, smooth_softmax=smooth,
    )  # fmt: skip
    return [made, f"{made}.1", f"{made}.2"]


@spelled("skip_norm/outputs", {"outs": 4}, {"outs": 4, "bias": 1}, {"outs": 1}, {"outs": 4, "row": 1}, steps=None)
def skip_norm(net: Net, outs: int, bias: int = 0, row: int = 0) -> list[str]:
    x = net.input(net.floats(2, LONG, WIDTH))
    skip = net.input(net.floats(*((1, LONG, WIDTH) if row else (2, LONG, WIDTH))))
    more = [net.floats(WIDTH)] if bias else []
    made = net.ms("SkipLayerNormalization", x, skip, net.floats(WIDTH), net.floats(WIDTH), *more, outs=outs)
    return [made, f"{made}.3"] if outs > 1 else [made]


@spelled("skip_norm/statistics")
def skip_norm_statistics(net: Net) -> list[str]:
    x = net.input(net.floats(2, LONG, WIDTH))
    total = net.op("Add", x, net.input(net.floats(2, LONG, WIDTH)))
    made = net.op("LayerNormalization", total, net.floats(WIDTH), net.floats(WIDTH), outs=3, epsilon=1e-12)
    return [made, f"{made}.1", f"{made}.2", total]


@spelled("skip_norm/statistics", unknown=True)
def skip_norm_statistics_by_skip(net: Net) -> list[str]:
    x = net.input(net.floats(2, LONG, WIDTH))
    skip = net.input(net.floats(2, LONG, WIDTH))
    made = net.ms("SkipLayerNormalization", x, skip, net.floats(WIDTH), net.floats(WIDTH), outs=4)
    return [made, f"{made}.1", f"{made}.2", f"{made}.3"]


@spelled("skip_norm/rms", {"outs": 4}, {"outs": 4, "bias": 1}, {"outs": 1}, steps=None)
def skip_rms(net: Net, outs: int, bias: int = 0) -> list[str]:
    x, skip = (net.input(net.floats(2, LONG, WIDTH)) for _ in range(2))
    more = [net.floats(WIDTH)] if bias else []
    made = net.ms("SkipSimplifiedLayerNormalization", x, skip, net.floats(WIDTH), *more, outs=outs)
    net.nodes[-1].output[1:3] = ["", ""][: outs - 1]
    return [made, f"{made}.3"] if outs > 1 else [made]


@spelled("norm/statistics", {"axis": -1}, {"axis": 1}, {"axis": 2}, steps=None, room=99)
def layer_norm_with_statistics(net: Net, axis: int) -> list[str]:
    x = net.input(net.floats(2, LONG, WIDTH))
    shape = (LONG, WIDTH) if axis == 1 else (WIDTH,)
    made = net.op("LayerNormalization", x, net.floats(*shape), net.floats(*shape), outs=3, axis=axis)
    return [made, f"{made}.1", f"{made}.2"]


@spelled("norm/simplified_statistics", steps=None)
def simplified_with_statistics(net: Net) -> list[str]:
    made = net.op(
        "SimplifiedLayerNormalization", net.input(net.floats(2, LONG, WIDTH)), net.floats(WIDTH), outs=2, axis=-1
    )
    return [made, f"{made}.1"]


@spelled(
    "embed/forms", {}, {"segments": 1}, {"mask": 1}, {"segments": 1, "mask": 1, "sum": 1}, {"positions": 1},
    {"free": 1}, steps=None, room=99,
)  # fmt: skip
def embeddings(
    net: Net, segments: int = 0, mask: int = 0, sum: int = 0, positions: int = 0, free: int = 0
) -> list[str]:
    shape = (2, "long") if free else (2, LONG)
    if free:
        net.dims = {"long": (1, 9)}
    words = net.input(net.integers(0, 9, 2, LONG, dtype=np.int32), "ids", shape)
    kinds = net.input(net.integers(0, 2, 2, LONG, dtype=np.int32), "kinds", shape) if segments else ""
    tables = [net.floats(9, WIDTH), net.floats(12, WIDTH), net.floats(2, WIDTH) if segments else ""]
    given = net.input(np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32), "mask", shape) if mask else ""
    places = net.input(net.integers(0, 9, 2, LONG, dtype=np.int32), "places", shape) if positions else ""
    made = net.ms(
        "EmbedLayerNormalization", words, kinds, *tables, net.floats(WIDTH), net.floats(WIDTH), given, places, outs=3
    )
    return [made, f"{made}.1", *([f"{made}.2"] if sum else [])]


@spelled("gelu/fused", {"op": "Gelu"}, {"op": "BiasGelu"}, {"op": "FastGelu"}, {"op": "FastGelu", "bias": 1}, {"op": "QuickGelu"}, {"op": "QuickGelu", "alpha": 1.0}, steps=None)  # fmt: skip  # noqa: E501
def fused_gelu(net: Net, op: str, bias: int = 0, alpha: float | None = None) -> str:
    more = {} if alpha is None else {"alpha": alpha}
    biased = [net.floats(WIDTH)] if bias or op == "BiasGelu" else []
    return net.ms(op, net.input(net.floats(2, LONG, WIDTH)), *biased, **more)


@spelled("beams", {}, {"early": 1}, steps=None)
def beam_search(net: Net, early: int = 0) -> list[str]:
    ids = net.input(net.integers(0, 9, 2, 3, dtype=np.int32))
    numbers = [np.array([n], np.int32) for n in (10, 1, 3, 2)]
    form = {"decoder": decoder(1), "eos_token_id": 4, "pad_token_id": 0, "early_stopping": early}
    made = net.ms("BeamSearch", ids, *numbers, f(1.0).reshape(1), outs=2, **form)
    return [made, f"{made}.1"]


@spelled("search", {"pairs": 1}, {}, steps=None)
def greedy_search(net: Net, pairs: int = 0) -> str:
    ids, more = net.input(net.integers(1, 9, 1, 3, dtype=np.int32)), {"no_repeat_ngram_size": 2} if pairs else {}
    form = {"decoder": decoder(1), "eos_token_id": -1, "pad_token_id": 0}
    return net.ms("GreedySearch", ids, np.array([10], np.int32), **form, **more)


def free(net: Net, array: np.ndarray, name: str, batch: bool = True) -> str:
    """An input whose batch and length are named."""
    net.dims = {"batch": (1, 3), "long": (1, 7)}
    return net.input(array, name, ("batch" if batch else array.shape[0], "long", *array.shape[2:]))


@spelled(
    "attention/free", {}, {"mask": "of_keys"}, {"mask": "lengths"}, {"back": 1}, {"back": 1, "mask": "of_keys"},
    {"mask": "of_pairs"}, {"mask": "ends_and_starts"}, steps=None, room=99,
)  # fmt: skip
def attention_of_free_sizes(net: Net, mask: str = "none", back: int = 0) -> str:
    x = free(net, net.floats(2, LONG, WIDTH), "x")
    shapes = {1: ("batch",), 2: ("batch", "long"), 3: ("batch", "long", "long")}
    array = MASKS[mask]
    shape: tuple[int | str, ...] = shapes[array.ndim]
    if mask == "ends_and_starts":
        shape = ("2*batch",)
    given = net.input(array, "mask", shape) if array.size else ""
    weights = net.floats(WIDTH, 3 * WIDTH), net.floats(3 * WIDTH)
    return net.ms("Attention", x, *weights, given, num_heads=HEADS, unidirectional=back)


@spelled(
    "multi_head/free", {}, {"mask": "of_keys"}, {"mask": "lengths"}, {"back": 1}, {"bias": 1}, {"scores": 1},
    {"present": 1}, steps=None, room=99,
)  # fmt: skip
def multi_head_of_free_sizes(
    net: Net, mask: str = "none", back: int = 0, bias: int = 0, scores: int = 0, present: int = 0
) -> list[str]:
    sides = [free(net, net.floats(2, LONG, WIDTH), f"x{number}") for number in range(3)]
    array = MULTI_MASKS[mask]
    given = net.input(array, "mask", ("batch", "long")[: array.ndim]) if array.size else ""
    added = net.floats(3 * WIDTH) if bias else ""
    table = net.floats(1, HEADS, LONG, LONG)
    more = net.input(table, "scores", (1, HEADS, "long", "long")) if scores else ""
    made = net.ms(
        "MultiHeadAttention", *sides, added, given, more, outs=3 if present else 1, num_heads=HEADS, unidirectional=back
    )
    return [made, f"{made}.1", f"{made}.2"] if present else [made]


@spelled("skip_norm/free", {"op": "SkipLayerNormalization"}, {"op": "SkipSimplifiedLayerNormalization"}, steps=None)
def skip_norm_of_free_sizes(net: Net, op: str) -> list[str]:
    x, skip = (free(net, net.floats(2, LONG, WIDTH), name) for name in ("x", "skip"))
    weights = [net.floats(WIDTH)] if "Simplified" in op else [net.floats(WIDTH), net.floats(WIDTH)]
    made = net.ms(op, x, skip, *weights, outs=4)
    net.nodes[-1].output[1:3] = ["", ""]
    return [made, f"{made}.3"]


@spelled("gelu/free", {"op": "Gelu"}, {"op": "BiasGelu"}, {"op": "FastGelu"}, {"op": "QuickGelu"}, steps=None)
def fused_gelu_of_free_sizes(net: Net, op: str) -> str:
    biased = [net.floats(WIDTH)] if op == "BiasGelu" else []
    return net.ms(op, free(net, net.floats(2, LONG, WIDTH), "x"), *biased)


@spelled("block/torch", {"mask": 0}, {"mask": 1}, {"free": 1}, {"free": 1, "mask": 1}, steps=None, room=99)
def attention_of_torch(net: Net, mask: int = 0, free: int = 0) -> str:
    """scaled_dot_product_attention as torch's exporters write it: scales by the root of the size on both sides."""
    if free:
        net.dims = {"batch": (1, 3), "long": (1, 7)}
    shape = ("batch", "long", WIDTH) if free else (2, LONG, WIDTH)
    x = net.input(net.floats(2, LONG, WIDTH), "x", shape)
    sides = []
    for _ in range(3):
        flat = net.op("Add", net.op("MatMul", x, net.floats(WIDTH, WIDTH)), net.floats(WIDTH))
        cut = net.op("Reshape", flat, ints(0, 0, HEADS, WIDTH // HEADS))
        sides.append(net.op("Transpose", cut, perm=[0, 2, 1, 3]))
    size = net.op("Cast", net.op("Slice", net.op("Shape", sides[0]), ints(-1), ints(2**31)), to=1)
    scale = net.op("Sqrt", net.op("Div", np.ones(1, np.float32), net.op("Sqrt", size)))
    query = net.op("Mul", sides[0], scale)
    key = net.op("Mul", net.op("Transpose", sides[1], perm=[0, 1, 3, 2]), scale)
    scores = net.op("MatMul", query, key)
    if mask:
        ones = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int64)
        given = net.input(ones, "mask", ("batch", "long") if free else (2, LONG))
        wide = net.op("Cast", net.op("Unsqueeze", given, ints(1, 2)), to=1)
        low = net.op("Mul", net.op("Sub", f(1), wide), f(float(np.finfo(np.float32).min)))
        scores = net.op("Add", scores, low)
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), sides[2])
    back = net.op("Transpose", mixed, perm=[0, 2, 1, 3])
    both = net.op("Slice", net.op("Shape", x), ints(0), ints(2))
    return net.op("Reshape", back, net.op("Concat", both, ints(WIDTH), axis=0))
