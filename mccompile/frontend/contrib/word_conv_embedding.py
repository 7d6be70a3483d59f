"""WordConvEmbedding: words become vectors by a convolution over the vectors of their characters.

Invariant: a word is as long as it has characters other than 0, and at least as long as the window; one that begins
with 0 gives zeros (onnxruntime leaves there what was in memory).
"""

from __future__ import annotations

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..contributed import writes

_WORDS = "{1, 2, 3, 4, 0, 0, 2, 1, 0, 5, 1, 1, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 5, 4, 3, 2, 1, 5}"
_CONSTANTS = f"<int32[5, 6] s = {_WORDS}, float f = {{0.05}}>"


@writes(
    "WordConvEmbedding",
    f"g (float[3, 1, 2, 4] w, float[3] b, float[6, 4] e) => (float[5, 3] y) {_CONSTANTS}"
    " { c = Mul(e, f) v = Mul(w, f) y = com.microsoft.WordConvEmbedding"
    " <embedding_size = 3, conv_window_size = 2, char_embedding_size = 4> (s, v, b, c) }",
    f"g (float[2, 1, 3, 4] w, float[2] b, float[6, 4] e) => (float[5, 2] y) {_CONSTANTS}"
    " { c = Mul(e, f) v = Mul(w, f) y = com.microsoft.WordConvEmbedding (s, v, b, c) }",
)
def word_conv_embedding(body: Body) -> None:
    body.only("char_embedding_size", "conv_window_size", "embedding_size")
    words, kernel, table = body.type(0), body.type(1), body.type(3)
    if words.rank < 2 or kernel.rank != 4 or kernel.shape[1] != 1 or table.shape[1:] != kernel.shape[3:]:
        raise Invalid(f"words {words}, a convolution {kernel} and vectors of characters {table}")
    (filters, _, window, width), length = kernel.shape, words.shape[1]
    said = (("embedding_size", filters), ("conv_window_size", window), ("char_embedding_size", width))
    if any(body.attribute(name, size) != size for name, size in said):
        raise Invalid(f"a convolution {kernel} has other sizes than its attributes say")
    if not isinstance(window, int) or not isinstance(length, int) or length < window:
        raise Unsupported(f"words of {length} characters, with a window of {window}", "make them as long at least")
    letters = _words(body)
    vectors = body.op("Gather", body.operand(3), letters, axis=0)
    made = body.op("Conv", body.op("Unsqueeze", vectors, body.ints(1)), body.operand(1), body.operand(2))
    made = body.op("Tanh", body.op("Squeeze", made, body.ints(3)))  # [words, filters, places]
    letters = body.op("Cast", body.op("Cast", letters, to=9), to=7)  # 1 for each that is not 0
    more = body.op("Sub", body.op("ReduceSum", letters, body.ints(1)), body.index(window))
    last = body.op("Max", more, body.index(0))  # place of the window in a word
    seen = body.op("LessOrEqual", body.ints(*range(length - window + 1)), last)
    seen = body.op("Unsqueeze", seen, body.ints(1))
    best = body.op("ReduceMax", body.op("Where", seen, made, body.number(float("-inf"))), body.ints(2), keepdims=0)
    begins = body.op("Slice", letters, body.ints(0), body.ints(1), body.ints(1))
    body.give(0, body.op("Where", body.op("Cast", begins, to=9), best, body.number(0.0)))


def _words(body: Body) -> str:
    """The words; onnxruntime reads those of more than two axes as so many of the first elements."""
    type = body.type(0)
    if type.rank == 2:
        return body.operand(0)
    rows, length = type.static_shape[:2]
    flat = body.op("Reshape", body.operand(0), body.ints(-1))
    return body.op("Reshape", body.op("Slice", flat, body.ints(0), body.ints(rows * length)), body.ints(rows, length))
