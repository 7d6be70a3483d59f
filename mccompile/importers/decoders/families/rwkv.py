"""RWKV 4: each channel is a mean of its values, whose weights fade with the distance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..config import Config
from ..family import Family
from ..fixed_states import Recurrent, Writer
from ..nodes import Nodes

_BLOCK = "rwkv.blocks.{}"
_MIXES = {
    f"{part}.mix_{role}": f"{_BLOCK}.{whole}.time_mix_{role}"
    for part, whole, roles in (
        ("att", "attention", ("key", "value", "receptance")),
        ("ffn", "feed_forward", ("key", "receptance")),
    )
    for role in roles
}
_PRODUCTS = {
    f"{part}.{role}": f"{_BLOCK}.{whole}.{role}.weight"
    for part, whole, roles in (
        ("att", "attention", ("key", "value", "receptance", "output")),
        ("ffn", "feed_forward", ("key", "value", "receptance")),
    )
    for role in roles
}
_NAMES = {
    "embed": "rwkv.embeddings.weight",
    "embed_norm": "rwkv.blocks.0.pre_ln.weight",
    "embed_norm.bias": "rwkv.blocks.0.pre_ln.bias",
    "att_norm": f"{_BLOCK}.ln1.weight",
    "att_norm.bias": f"{_BLOCK}.ln1.bias",
    "ffn_norm": f"{_BLOCK}.ln2.weight",
    "ffn_norm.bias": f"{_BLOCK}.ln2.bias",
    "decay": f"{_BLOCK}.attention.time_decay",
    "first": f"{_BLOCK}.attention.time_first",
    **_MIXES,
    **_PRODUCTS,
    "final_norm": "rwkv.ln_out.weight",
    "final_norm.bias": "rwkv.ln_out.bias",
    "head": "head.weight",
}
_NEVER = -1e30  # the largest exponent of no token


def _rwkv(config: Config) -> Recurrent:
    width = config.count("hidden_size")
    inner, hidden = config.count("attention_hidden_size", width), config.count("intermediate_size", 4 * width)
    own = (1, inner)
    return Recurrent(
        vocabulary=config.count("vocab_size"),
        width=width,
        layers=config.count("num_hidden_layers"),
        states={"att": (1, 1, width), "ffn": (1, 1, width), "above": own, "below": own, "most": own},
        layer=partial(_layer, inner, hidden, config.count("rescale_every", 6, least=0)),
        epsilon=config.real("layer_norm_epsilon", 1e-5),
        last_epsilon=1e-5,  # whatever config.json says
        rms=False,
        tied=config.flag("tie_word_embeddings"),
    )


@np.errstate(over="ignore")
def _layer(inner: int, hidden: int, every: int, w: Writer, x: str, number: int) -> str:
    """Each `every` layers, what goes on is halved, as transformers does it: norms have an epsilon beside it."""
    nodes, width = w.nodes, w.made.width
    size = 0.5 ** (number // every) if every else 1.0
    mixed = _mixed(w, x, number, "att", ("key", "value", "receptance"))
    key, value, take = (
        w.linear(each, f"att.{role}", number, inner, width)
        for each, role in zip(mixed, ("key", "value", "receptance"), strict=True)
    )
    decay, first = (w.array(role, (inner,), number) for role in ("decay", "first"))
    step = partial(_step, nodes.constant(-np.exp(decay)), nodes.constant(first))
    y = w.scanned(number, ["above", "below", "most"], {key: (1, inner), value: (1, inner)}, (1, inner), step)
    y = w.linear(nodes.op("Mul", nodes.op("Sigmoid", take), y), "att.output", number, width, inner)
    x = nodes.op("Add", x, _scaled(nodes, y, size))
    key, take = _mixed(w, x, number, "ffn", ("key", "receptance"))
    made = nodes.activated(w.linear(key, "ffn.key", number, hidden, width), "relu2")
    made = _scaled(nodes, w.linear(made, "ffn.value", number, width, hidden), size)
    take = nodes.op("Sigmoid", w.linear(take, "ffn.receptance", number, width, width))
    x = nodes.op("Add", x, nodes.op("Mul", take, made))
    return _scaled(nodes, x, 0.5 if every and (number + 1) % every == 0 else 1.0)


def _scaled(nodes: Nodes, x: str, factor: float) -> str:
    return x if factor == 1 else nodes.op("Mul", x, nodes.number(factor))


def _mixed(w: Writer, x: str, number: int, part: str, roles: Sequence[str]) -> list[str]:
    """Each token with the one before."""
    nodes, width = w.nodes, w.made.width
    x = w.norm(x, f"{part}_norm", number)
    before = nodes.op("Slice", w.behind(x, part, number), nodes.ints(0), nodes.ints(-1), nodes.ints(1))
    made = []
    for role in roles:
        share = w.array(f"{part}.mix_{role}", (width,), number)
        own = nodes.op("Mul", x, nodes.constant(share))
        made.append(nodes.op("Add", own, nodes.op("Mul", before, nodes.constant(np.float32(1) - share))))
    return made


def _step(decay: str, first: str, nodes: Nodes, olds: Sequence[str], token: Sequence[str]) -> tuple[Sequence[str], str]:
    """Sums of exp(key) * value and of exp(key), both by exp(most)."""
    above, below, most = olds
    key, value = token
    most = nodes.op("Where", nodes.op("Greater", below, nodes.number(0.0)), most, nodes.number(_NEVER))

    def joined(old: str, new: str) -> tuple[str, str, str]:
        peak = nodes.op("Max", old, new)
        kept, more = (nodes.op("Exp", nodes.op("Sub", each, peak)) for each in (old, new))
        whole = nodes.op("Add", nodes.op("Mul", kept, above), nodes.op("Mul", more, value))
        return whole, nodes.op("Add", nodes.op("Mul", kept, below), more), peak

    upper, lower, _ = joined(most, nodes.op("Add", key, first))
    return joined(nodes.op("Add", most, decay), key), nodes.op("Div", upper, lower)


FAMILIES = (Family(("rwkv",), _rwkv, _NAMES, attends=False),)
