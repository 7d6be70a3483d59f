"""QEmbedLayerNormalization: the sum of rows of tables of bytes, normalized."""

from __future__ import annotations

from ..composed_body import Body
from ..composed_pieces import give_token_counts
from ..contributed import writes

(IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK), SCALES, ZEROS = range(8), 8 - 2, 13 - 2
_FIRST = "g (uint8[7, 4] w, uint8[5, 4] p, uint8[2, 4] s, uint8[4] m, uint8[4] b) => (float[2, 3, 4] y, int32[2] k)"
_KNOWN = (
    "<int32[2, 3] i = {1, 6, 0, 2, 2, 5}, int32[2, 3] t = {0, 1, 1, 0, 0, 1}, int32[2, 3] a = {1, 1, 0, 1, 1, 1},"
    " float c = {0.02}, uint8 z = {2}>"
)


@writes(
    "QEmbedLayerNormalization",
    f"{_FIRST} {_KNOWN} {{ y, k = com.microsoft.QEmbedLayerNormalization <epsilon = 0.01>"
    " (i, t, w, p, s, m, b, a, c, c, c, c, c, z, z, z, z, z) }",
)
def q_embed_layer_normalization(body: Body) -> None:
    body.only("epsilon")

    def floats(name: str, table: int) -> str:
        return body.op("DequantizeLinear", name, body.operand(SCALES + table), body.operand(ZEROS + table))

    def rows(table: int, ids: str) -> str:
        return floats(body.op("Gather", body.operand(table), ids, axis=0), table)

    total = body.op("Add", rows(WORDS, body.operand(IDS)), rows(POSITIONS, body.places(body.size(IDS, 1))))
    if body.has(SEGMENT_IDS):
        total = body.op("Add", total, rows(SEGMENTS, body.operand(SEGMENT_IDS)))
    factors = (floats(body.operand(table), table) for table in (GAMMA, BETA))
    body.give(0, body.op("LayerNormalization", total, *factors, axis=-1, epsilon=body.attribute("epsilon", 1e-12)))
    if body.wants(1):
        give_token_counts(body, MASK, IDS)
