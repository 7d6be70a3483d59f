"""MoEGroupRouter: the scores that a mixture of experts takes, where a token first prefers groups of experts, then the
best of these groups (DeepSeek-V3's router).

Invariant: of experts that a token likes alike the first ones are taken, whatever their groups. Logits below -15
keep their scores, which onnxruntime's sigmoid rounds to 0 there.
"""

from __future__ import annotations

import numpy as np

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..contributed import writes

_LEAST = 1e-20  # below this a score counts as this one, before its logarithm
_BLOCK = 256  # the depth of a projection is a multiple of it


@writes(
    "MoEGroupRouter",
    "g (float[2, 3, 12] x, float[12] b) => (float[6, 12] y)"
    " { y = com.microsoft.MoEGroupRouter <n_group = 4, topk_group = 2, top_k = 3> (x, b) }",
    "g (float[5, 6] x, float[6] b) => (float[5, 6] y)"
    " { y = com.microsoft.MoEGroupRouter <n_group = 3, group_topk = 9, top_k = 4, router_sentinel = -50.0> (x, b) }",
    "g (float[4, 7] x, float[7] b) => (float[4, 7] y) { y = com.microsoft.MoEGroupRouter <top_k = 2> (x, b) }",
    "g (float[4, 7] x, float[7] b) => (float[4, 7] s, float[4, 7] w)"
    ' { "", s, w = com.microsoft.MoEGroupRouter <top_k = 2> (x, b) }',
    "g (float[2, 256] x, float[3] b, float[3, 256] p) => (float[2, 3] s, float[2, 3] w)"
    ' { "", s, w = com.microsoft.MoEGroupRouter <top_k = 1> (x, b, p) }',
)
def moe_group_router(body: Body) -> None:
    body.only("group_topk", "n_group", "router_sentinel", "top_k", "topk_group")
    groups, kept, each, many = (
        int(body.attribute(name, usual))
        for name, usual in (("n_group", 1), ("topk_group", 1), ("group_topk", 2), ("top_k", 0))
    )
    experts = body.type(1).shape[0] if body.type(1).rank == 1 else None
    if not isinstance(experts, int):
        raise Unsupported(f"expert_bias (operand 1) is {body.type(1)}", "make it a vector of known size")
    if min(groups, kept, each, many) < 1 or experts % groups or kept > groups or many > experts:
        why = f"{many} of {experts} experts in {kept} of {groups} groups, which their best {each} stand for"
        raise Invalid(f"{why}, cannot be taken")
    scores = body.op("Sigmoid", _logits(body, experts))
    liked = body.op("Add", scores, body.operand(1))
    if body.wants(1) or body.wants(2):
        if not (body.wants(1) and body.wants(2)) or body.wants(0) or groups > 1:
            raise Invalid("selection_scores and router_weights come together, without router_probs and for one group")
        body.give(1, liked, False)
        body.give(2, scores, False)
        return
    taken = _best(body, liked, experts, (groups, kept, each), many)
    least = body.op("Max", body.op("GatherElements", scores, taken, axis=1), body.number(_LEAST))
    others = body.op("Expand", body.number(body.attribute("router_sentinel", -10000.0)), body.op("Shape", liked))
    body.give(0, body.op("ScatterElements", others, taken, body.op("Log", least), axis=1))


def _logits(body: Body, experts: int) -> str:
    """[tokens, experts], from rows that hold them or that are projected to them."""
    type = body.type(0)
    if type.rank < 2:
        raise Invalid(f"logits (operand 0) are {type}, not rows")
    if not body.has(2):
        if type.shape[-1] != experts:
            raise Invalid(f"logits (operand 0) are {type}, for {experts} experts")
        return body.op("Reshape", body.operand(0), body.ints(-1, experts))
    if type.rank != 2 or body.wants(0) or (isinstance(type.shape[1], int) and (type.shape[1] or 1) % _BLOCK):
        why = f"a projection makes scores of rows whose size is a multiple of {_BLOCK}, not router_probs"
        raise Invalid(f"{why}; operand 0 is {type}")
    return body.op("MatMul", body.operand(0), body.op("Transpose", body.operand(2), perm=[1, 0]))


def _best(body: Body, liked: str, experts: int, form: tuple[int, int, int], many: int) -> str:
    """Where the experts are that a token takes: [tokens, up to many]"""
    groups, kept, each = form
    if kept == groups:
        return f"{body.op('TopK', liked, body.ints(many), outs=2, axis=1)}_1"
    size = experts // groups
    grouped = body.op("Reshape", liked, body.ints(-1, groups, size))
    tops = body.op("TopK", grouped, body.ints(min(each, size)), outs=2, axis=2)
    sums = body.op("ReduceSum", tops, body.ints(2), keepdims=0)
    chosen = f"{body.op('TopK', sums, body.ints(kept), outs=2, axis=1)}_1"
    in_order = body.op("TopK", chosen, body.ints(kept), outs=2, axis=1, largest=0)
    firsts = body.op("Unsqueeze", body.op("Mul", in_order, body.index(size)), body.ints(2))
    places = body.op("Add", firsts, body.constant(np.arange(size, dtype=np.int64)))
    places = body.op("Reshape", places, body.ints(-1, kept * size))
    of_these = body.op("GatherElements", liked, places, axis=1)
    best = f"{body.op('TopK', of_these, body.ints(min(many, kept * size)), outs=2, axis=1)}_1"
    return body.op("GatherElements", places, best, axis=1)
