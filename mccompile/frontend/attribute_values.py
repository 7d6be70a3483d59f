"""What values attributes may have, by their names, which mean the same for every operator.

Invariant: an operator's class and its decomposition are asked only about nodes that passed here, so counts and sizes
are positive, and switches are 0 or 1: for other numbers, runtimes and ONNX's own inference disagree. Names that mean
something else for each operator (mode, axis) are checked by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from onnx import AttributeProto

from ..graph.ir import Invalid

_MOST = 1 << 31  # of a count or a size
_WINDOWS = frozenset(("kernel_shape", "strides", "dilations"))  # how far they reach, operators say themselves
_POSITIVE = _WINDOWS | frozenset(
    (
        "N", "K", "hidden_size", "group", "num_groups", "num_branches", "ngram_size", "top_k", "dilation", "blocksize",
        "num_outputs", "output_height", "output_width",
    )
)  # fmt: skip
# Where 0 is explicit, it is what an absent one means.
_NOT_NEGATIVE = frozenset(
    (
        "num_heads", "kv_num_heads", "q_num_heads", "block_size", "rotary_embedding_dim", "no_repeat_ngram_size",
        "mrope_section", "p",
    )
)  # fmt: skip
_SWITCHES = frozenset(
    (
        "keepdims", "ceil_mode", "select_last_index", "largest", "sorted", "exclusive", "reverse", "align_corners",
        "transA", "transB", "transBatchA", "transBatchB", "noop_with_empty_axes", "center_point_box",
        "count_include_pad", "layout", "storage_order", "input_forget", "onesided", "inverse", "allowzero", "fmod",
        "upper", "is_causal", "unidirectional", "do_rotary", "interleaved", "rotary_interleaved", "smooth_softmax",
        "keep_aspect_ratio", "detect_positive", "detect_negative", "antialias", "exclude_outside",
        "linear_before_reset", "channels_last", "scan_input_directions", "scan_output_directions", "directions",
    )
)  # fmt: skip
_TEXTS = {"auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "")}
_FINITE = frozenset(
    (
        "alpha", "beta", "gamma", "scale", "epsilon", "softcap", "cubic_coeff_a", "bias",
    )
)  # fmt: skip


def check_values(attributes: Iterable[AttributeProto]) -> None:
    """Raises Invalid for the first value that means nothing."""
    for attribute in attributes:
        if attribute.type in (AttributeProto.INT, AttributeProto.INTS):
            for value in attribute.ints if attribute.type == AttributeProto.INTS else (attribute.i,):
                _check_int(attribute.name, value)
        elif attribute.type == AttributeProto.FLOAT:
            if attribute.name in _FINITE and not math.isfinite(attribute.f):
                raise Invalid(f"{attribute.name} is {attribute.f}, which is not a number to compute with")
        elif attribute.type == AttributeProto.STRING and attribute.name in _TEXTS:
            allowed = _TEXTS[attribute.name]
            text = attribute.s.decode("utf-8", "backslashreplace")
            if text not in allowed:
                raise Invalid(f"{attribute.name} {text!r} is not one of {', '.join(filter(None, allowed))}")


def _check_int(name: str, value: int) -> None:
    if name in _SWITCHES:
        if value not in (0, 1):
            raise Invalid(f"{name} is {value}, it must be 0 or 1")
    elif name in _POSITIVE or name in _NOT_NEGATIVE:
        least = 1 if name in _POSITIVE else 0
        if value < least or (value >= _MOST and name not in _WINDOWS):
            raise Invalid(f"{name} is {value}, it must be {least} or more, and below {_MOST}")
