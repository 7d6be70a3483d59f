"""Mixtures of experts: each token goes through the few MLPs that its scores prefer.

Invariant: an expert that no token of a run prefers is a branch that does not run, so its weights are not read.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx import TensorProto, helper

from .description import Experts
from .nodes import Nodes

Linear = Callable[
    [Nodes, str, str, tuple[int, ...], int, int], str
]  # (nodes, x, role, layer and expert, rows, columns)


def mixture(nodes: Nodes, x: str, number: int, experts: Experts, width: int, activation: str, linear: Linear) -> str:
    """[1, tokens, width] of that."""
    shares = _shares(nodes, linear(nodes, x, "router", (number,), experts.count, width), experts)
    own = nodes.op("Split", shares, nodes.ints(*[1] * experts.count), outputs=experts.count, axis=2)
    taken = nodes.op("Greater", nodes.op("ReduceMax", shares, nodes.ints(0, 1), keepdims=0), nodes.number(0.0))

    def mlp(inside: Nodes, role: str, place: tuple[int, ...], hidden: int) -> str:
        gate = inside.activated(linear(inside, x, f"{role}_gate", place, hidden, width), activation)
        made = inside.op("Mul", gate, linear(inside, x, f"{role}_up", place, hidden, width))
        return linear(inside, made, f"{role}_down", place, width, hidden)

    if experts.shared:
        made = mlp(nodes, "shared", (number,), experts.shared)
        let = nodes.op("Sigmoid", linear(nodes, x, "shared_router", (number,), 1, width))
        made = nodes.op("Mul", made, let)
    else:
        made = nodes.op("Expand", nodes.number(0.0), nodes.op("Shape", x))
    for expert in range(experts.count):
        inside = Nodes(f"layer_{number}_expert_{expert}_")
        inside.constants = nodes.constants
        share = own if expert == 0 else f"{own}_{expert}"
        more = inside.op("Mul", mlp(inside, "expert", (number, expert), experts.hidden), share)
        inside.op("Add", made, more, made=f"{inside.prefix}with")
        other = Nodes(inside.prefix)
        other.op("Identity", made, made=f"{inside.prefix}without")
        branches = [_branch(each, width) for each in (inside, other)]
        one = nodes.op("Squeeze", nodes.op("Gather", taken, nodes.ints(expert)))
        made = nodes.op("If", one, then_branch=branches[0], else_branch=branches[1])
    return made


def _branch(nodes: Nodes, width: int) -> object:
    last = nodes.made[-1].output[0]
    return helper.make_graph(
        nodes.made, last, [], [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, "tokens", width])]
    )


def _shares(nodes: Nodes, scores: str, experts: Experts) -> str:
    """[1, tokens, experts], 0 for those that are not among the best."""
    best = nodes.op("TopK", nodes.op("Softmax", scores, axis=-1), nodes.ints(experts.chosen), outputs=2, axis=-1)
    values = best
    if experts.among_best:
        values = nodes.op("Div", best, nodes.op("ReduceSum", best, nodes.ints(-1), keepdims=1))
    none = nodes.op("Expand", nodes.number(0.0), nodes.op("Shape", scores))
    return nodes.op("ScatterElements", none, f"{best}_1", values, axis=2)
