"""MRotaryEmbedding: rotation by three positions for each token, each of which has a part of the channels."""

from __future__ import annotations

import numpy as np

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..composed_pieces import FIX
from ..contributed import writes

_HEAD = "g (float[1, 2, 16] x, float[9, 4] c, float[9, 4] s) => (float[1, 2, 16] y)"
_KNOWN = "<int64[3, 1, 2] p = {0, 3, 1, 5, 8, 2}>"


@writes(
    "MRotaryEmbedding",
    f"{_HEAD} {_KNOWN} {{ y = com.microsoft.MRotaryEmbedding <num_heads = 2, mrope_section = [2, 1, 1]>"
    " (x, p, c, s) }",
    f"{_HEAD} {_KNOWN} {{ y = com.microsoft.MRotaryEmbedding"
    " <num_heads = 2, mrope_section = [2, 1, 1], mrope_layout = 1, interleaved = 1> (x, p, c, s) }",
)
def m_rotary_embedding(body: Body) -> None:
    own = ("mrope_section", "mrope_layout", "is_packed_batching", "scale")
    body.only(*own, "num_heads", "rotary_embedding_dim", "interleaved")
    sections, (_, half) = [int(size) for size in body.attribute("mrope_section", ())], body.type(2).shape
    channels, heads = body.type(0).shape[-1], int(body.attribute("num_heads", 0))
    if body.attribute("is_packed_batching", 0) or body.attribute("scale", 1.0) != 1:
        raise Unsupported("packed batches, or a scale")
    if not isinstance(half, int) or not isinstance(channels, int):
        raise Unsupported(f"x {body.type(0)} with caches {body.type(2)}", FIX)
    if len(sections) != 3 or sum(sections) != half:
        raise Invalid(f"sections {sections} are not three of {half} channels")
    body.opset = 23
    which = np.repeat(np.arange(3), sections)
    if body.attribute("mrope_layout", 0):
        places = np.arange(half)
        which = np.where(places < 3 * np.array([0, *sections[1:]])[places % 3], places % 3, 0)
    caches = (_mixed(body, body.op("Gather", body.operand(index), body.operand(1), axis=0), which) for index in (2, 3))
    width = int(body.attribute("rotary_embedding_dim", 0))
    more = {"interleaved": body.attribute("interleaved", 0), "rotary_embedding_dim": width}
    if body.type(0).rank == 3:
        more["num_heads"] = heads or channels // (2 * half)
    body.give(0, body.op("RotaryEmbedding", body.operand(0), *caches, **more))


def _mixed(body: Body, streams: str, which: np.ndarray) -> str:
    """Of [3, batch, tokens, channels] those of the stream that each channel belongs to."""
    parts = [body.op("Gather", streams, body.index(number), axis=0) for number in range(3)]
    rest = body.op("Where", body.constant(which == 2), parts[2], parts[0])
    return body.op("Where", body.constant(which == 1), parts[1], rest)
