"""What a family of decoders is: how its files call its sizes and weights. Each has a file in `families/`.

Invariant: every tensor of a file is used, or named as one that says nothing; so no part of a network is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from onnx import ModelProto

from ...base.errors import Problem, WrongUse
from ...base.records import dataclass
from .as_onnx import PAST, TOKENS, Place, decoder_model, most_sizes
from .config import Config, damaged, unsupported
from .description import Decoder, Layer
from .fixed_states import Recurrent, RecurrentWeights, recurrent_model
from .rotary import rotary, told
from .told import Told, silent
from .weights import Weight, stacked

LLAMA_NAMES = {  # of Hugging Face by role; {} is the layer
    "embed": "model.embed_tokens",
    "final_norm": "model.norm",
    "head": "lm_head",
    "attn_norm": "model.layers.{}.input_layernorm",
    "q": "model.layers.{}.self_attn.q_proj",
    "k": "model.layers.{}.self_attn.k_proj",
    "v": "model.layers.{}.self_attn.v_proj",
    "o": "model.layers.{}.self_attn.o_proj",
    "q_norm": "model.layers.{}.self_attn.q_norm",
    "k_norm": "model.layers.{}.self_attn.k_norm",
    "mlp_norm": "model.layers.{}.post_attention_layernorm",
    "gate": "model.layers.{}.mlp.gate_proj",
    "up": "model.layers.{}.mlp.up_proj",
    "down": "model.layers.{}.mlp.down_proj",
}
FULL, SLIDING = "full_attention", "sliding_attention"  # kinds of layers
_PRODUCTS = ("qkv", "q", "k", "v", "o", "gate_up", "gate", "up", "down")
_NORMS = ("attn_norm", "mlp_norm", "attn_post_norm", "mlp_post_norm", "final_norm", "q_norm", "k_norm")
_LAYER_NORMS = ("attn_norm", "mlp_norm", "attn_post_norm", "mlp_post_norm", "final_norm")
_MADE = r"rope_(freqs|factors_(long|short))\.weight"  # of the description
_SILENT = rf"(.*\.)?(rotary_emb\.inv_freq|attn\.(masked_)?bias|attention\.(masked_)?bias|{_MADE})"


def thirds(decoder: Decoder) -> dict[str, np.ndarray]:
    """Rows of q, k and v in one matrix, one behind the other."""
    wide, narrow = decoder.heads * decoder.head, decoder.groups * decoder.head
    cuts = np.split(np.arange(wide + 2 * narrow), [wide, wide + narrow])
    return dict(zip("qkv", cuts, strict=True))


def by_groups(decoder: Decoder) -> dict[str, np.ndarray]:
    """Rows of one matrix: of each group its queries, a key and a value."""
    if not decoder.groups or decoder.heads % decoder.groups:
        raise damaged(f"{decoder.heads} heads of queries do not share {decoder.groups} of keys and values")
    each = decoder.heads // decoder.groups
    rows = np.arange((each + 2) * decoder.groups * decoder.head).reshape(decoder.groups, each + 2, decoder.head)
    cuts = {"q": rows[:, :each], "k": rows[:, each], "v": rows[:, each + 1]}
    return {role: cut.reshape(-1) for role, cut in cuts.items()}


@dataclass(frozen=True)
class Family:
    types: tuple[str, ...]  # model_type of config.json
    describe: Callable[[Config], Decoder | Recurrent]
    names: Mapping[str, str] = field(default_factory=lambda: LLAMA_NAMES)
    applies: Callable[[Config], bool] = lambda config: True  # of those with one type, the first is taken
    architectures: tuple[str, ...] = ()  # general.architecture of GGUF
    pairs: bool = False  # channels that turn together are neighbours in GGUF: rows of q and k have another order
    gguf_names: Mapping[str, str] = field(default_factory=dict)  # that are not those of other families
    neighbours: bool = False  # and in Hugging Face's files
    split: Callable[[Decoder], dict[str, np.ndarray]] = thirds  # rows of the fused matrix of Hugging Face
    turned: bool = False  # Hugging Face has the weights of products transposed
    own: Callable[[Told], Mapping[str, Any]] = silent  # what llama.cpp takes by itself, in words of config.json
    attends: bool = True  # or is what goes on of a fixed size? Names are then those of whole tensors
    norm_offset: float = 0.0  # what Hugging Face leaves out of the weights of norms
    context: int = 2048  # max_position_embeddings where the file does not say

    def made(self, config: Config) -> Decoder | Recurrent:
        return self.describe(config.filled(max_position_embeddings=self.context))


def described(
    family: Family,
    config: Config,
    tensors: Mapping[str, Weight],
    name: str,
    dims: Mapping[str, tuple[int, int]],
    gguf: bool = False,
) -> ModelProto:
    """The model that a file means. `dims`: sizes that are asked for."""
    decoder = family.made(config)
    if isinstance(decoder, Recurrent):
        return _recurrent(family, decoder, tensors, name, gguf)
    if decoder.heads % decoder.groups:
        raise damaged(f"{decoder.heads} heads of queries do not share {decoder.groups} of keys and values")
    decoder = _within(decoder, dims)
    found = RoleWeights(family, decoder, tensors, gguf)
    model = decoder_model(found.decoder, found.find, name)
    _stop_if_any(found.left())
    return model


def _recurrent(family: Family, made: Recurrent, tensors: Mapping[str, Weight], name: str, gguf: bool) -> ModelProto:
    if gguf:
        found = RecurrentWeights(family.gguf_names, tensors)
    else:
        found = RecurrentWeights(family.names, _prefixed(family.names["embed"], family.names["head"], tensors))
    model = recurrent_model(made, found, name)
    _stop_if_any(found.left())
    return model


def _within(decoder: Decoder, dims: Mapping[str, tuple[int, int]]) -> Decoder:
    """With the context for which its positions hold."""
    if decoder.learned:
        check_positions(decoder.context, dims)
    ends = [layer.rotary.longest for layer in decoder.layers if layer.rotary and layer.rotary.longest]
    context = min([decoder.context, *ends])
    if ends:
        check_positions(context, dims, f"its rotary embeddings change behind {context} tokens, which is not supported")
    return replace(decoder, context=context)


def check_positions(context: int, dims: Mapping[str, tuple[int, int]], limit: str = "") -> None:
    """No token stands behind the table of positions."""
    limit = limit or f"it has a table of {context} positions"
    past, tokens = dims.get(PAST, most_sizes(context)[PAST])[1], dims.get(TOKENS, most_sizes(context)[TOKENS])[1]
    if past + tokens > context:
        why = f"{limit}, and {past} tokens with {tokens} new ones are {past + tokens}"
        tokens = max(1, min(tokens, context - 1))
        fix = f"use --dim {PAST}=0..{context - tokens},{TOKENS}=1..{tokens}"
        raise WrongUse(Problem("there are no positions for so many tokens", f"--dim {PAST}", why, fix))


class RoleWeights:
    """Weights of a file by role."""

    def __init__(self, family: Family, decoder: Decoder, tensors: Mapping[str, Weight], gguf: bool) -> None:
        self.family, self.gguf = family, gguf
        self.tensors = (
            tensors
            if gguf
            else _joined(_prefixed(f"{family.names['embed']}.weight", f"{family.names['head']}.", tensors))
        )
        self.decoder = decoder
        self.used = set[str]()
        if gguf:
            self.decoder = replace(decoder, tied="output.weight" not in tensors)
        elif decoder.tied and f"{self.named('head', None)}.weight" in self.tensors:
            self.used.add(f"{self.named('head', None)}.weight")  # a copy of the embedding

    def named(self, role: str, number: Place) -> str:
        names = {**GGUF_NAMES, **self.family.gguf_names} if self.gguf else self.family.names
        place = number if isinstance(number, tuple) else () if number is None else (number,)
        return names.get(role, "").format(*place)

    def find(self, role: str, shape: tuple[int, ...], number: Place = None, needed: bool = False) -> Weight | None:
        part, _, bias = role.partition(".")
        suffix = bias or "weight"
        name = self.named(part, number)
        needed = needed or (suffix == "weight" and self.has_norm(part))
        weight = self.tensors.get(f"{name}.{suffix}") if name else None
        if weight is not None:
            self.used.add(weight.name)
            return self._ordered(self._formed(weight, part, suffix, shape), part)
        weight = self._fused(part, suffix, shape, number)
        weight = weight and self._ordered(weight, part)
        if weight is None and needed:
            raise damaged(f"there is no tensor {name or part}.{suffix}")
        return weight

    def has_norm(self, part: str) -> bool:
        """Does each file of the family have this norm?"""
        d = self.decoder
        return part in _LAYER_NORMS and part in self.family.names and not (
            d.plain_norms or (d.parallel and part == "mlp_norm")
        )  # fmt: skip

    def _ordered(self, weight: Weight, part: str) -> Weight:
        """With channels that turn together half of the turned ones apart."""
        is_apart = not (self.family.pairs if self.gguf else self.family.neighbours)
        if is_apart or part not in ("q", "k", "q_norm", "k_norm"):
            return weight
        turned = [2 * len(layer.rotary.frequencies) for layer in self.decoder.layers if layer.rotary]
        rows = halves(weight.shape[0], self.decoder.head, max(turned, default=0))
        return replace(weight, chosen=rows if weight.chosen is None else weight.chosen[rows])

    def _formed(self, weight: Weight, part: str, suffix: str, shape: tuple[int, ...]) -> Weight:
        head = self.decoder.head
        if not self.gguf and suffix == "weight":
            if part in _PRODUCTS and self.family.turned:
                weight = replace(weight, turned=True, shape=weight.shape[::-1])
            if part in _NORMS and self.family.norm_offset:
                weight = replace(weight, offset=self.family.norm_offset)
        if part in ("q_norm", "k_norm") and self.decoder.norms_by_head and weight.shape == (shape[0] // head, head):
            weight = weight.flat
        if part == "positions" and self.decoder.unused_positions:
            rows = np.arange(self.decoder.unused_positions, weight.shape[0])
            weight = replace(weight, shape=(len(rows), *weight.shape[1:]), chosen=rows)
        if self.gguf and part == "up" and self.decoder.gated and weight.shape == (2 * shape[0], *shape[1:]):
            rows = np.arange(shape[0], 2 * shape[0])  # those of gate lie in front
            return replace(weight, name=f"{weight.name}.up", shape=shape, chosen=rows)
        if part == "shared_router" and weight.shape == shape[1:]:  # GGUF has it as a vector
            weight = weight.shaped(shape)
        if weight.shape != shape:
            raise damaged(f"{weight.name} is {list(weight.shape)}, not {list(shape)}")
        return weight

    def _fused(self, part: str, suffix: str, shape: tuple[int, ...], number: Place) -> Weight | None:
        """Rows of a matrix that holds several."""
        d = self.decoder
        if part in ("q", "k", "v"):
            whole = "qkv"
            rows = thirds(d) if self.gguf else self.family.split(d)
        elif (part == "gate" or (part == "up" and not self.gguf)) and d.gated:  # GGUF calls both of them up
            whole = "up" if self.gguf else "gate_up"
            rows = {"gate": np.arange(d.hidden), "up": np.arange(d.hidden, 2 * d.hidden)}
        else:
            return None
        count = sum(len(each) for each in rows.values())
        made = self.find(whole if suffix == "weight" else f"{whole}.{suffix}", (count, *shape[1:]), number)
        return made and replace(made, name=f"{made.name}.{part}", shape=shape, chosen=rows[part])

    def left(self) -> list[str]:
        return sorted(name for name in self.tensors if name not in self.used and not re.fullmatch(_SILENT, name))


def _stop_if_any(left: Sequence[str]) -> None:
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        raise unsupported(f"the file has weights that its family does not have: {', '.join(left[:3])}{more}")


def _prefixed(table: str, head: str, tensors: Mapping[str, Weight]) -> Mapping[str, Weight]:
    """Files of a network that was saved without its head leave out what all names begin with."""
    begin, _, embed = table.partition(".")
    if table in tensors or embed not in tensors:
        return tensors
    named = (
        weight if name.startswith(head) else replace(weight, name=f"{begin}.{name}") for name, weight in tensors.items()
    )
    return {weight.name: weight for weight in named}


def _joined(tensors: Mapping[str, Weight]) -> Mapping[str, Weight]:
    """With one tensor where each head has a norm of its own: q_layernorm.norms.0.weight."""
    heads: dict[str, dict[int, Weight]] = {}
    made = dict[str, Weight]()
    for name, weight in tensors.items():
        found = re.fullmatch(r"(.*)\.norms\.(0|[1-9]\d{0,3})\.weight", name)
        if found:
            heads.setdefault(found[1], {})[int(found[2])] = weight
        else:
            made[name] = weight
    for name, each in heads.items():
        parts = [each[number] for number in sorted(each)]
        if sorted(each) != list(range(len(parts))) or len({part.shape for part in parts}) > 1:
            raise damaged(f"{name}.norms are not norms of heads from 0 on")
        made[f"{name}.weight"] = stacked(f"{name}.weight", parts)
    return made


def halves(rows: int, head: int, turned: int) -> np.ndarray:
    """Where rows of q or k lie in files that have channels that turn together as neighbours."""
    places = np.arange(rows).reshape(-1, head)
    first, rest = places[:, :turned], places[:, turned:]
    return np.concatenate([first[:, 0::2], first[:, 1::2], rest], 1).reshape(-1)


GGUF_NAMES = {
    "embed": "token_embd",
    "embed_norm": "token_embd_norm",
    "positions": "position_embd",
    "final_norm": "output_norm",
    "head": "output",
    "attn_norm": "blk.{}.attn_norm",
    "qkv": "blk.{}.attn_qkv",
    "q": "blk.{}.attn_q",
    "k": "blk.{}.attn_k",
    "v": "blk.{}.attn_v",
    "o": "blk.{}.attn_output",
    "q_norm": "blk.{}.attn_q_norm",
    "k_norm": "blk.{}.attn_k_norm",
    "attn_post_norm": "blk.{}.post_attention_norm",
    "mlp_norm": "blk.{}.ffn_norm",
    "gate": "blk.{}.ffn_gate",
    "up": "blk.{}.ffn_up",
    "down": "blk.{}.ffn_down",
    "mlp_post_norm": "blk.{}.post_ffw_norm",
    "router": "blk.{}.ffn_gate_inp",
    **{f"expert_{part}": f"blk.{{}}.ffn_{part}_exps.{{}}" for part in ("gate", "up", "down")},
    **{f"shared_{part}": f"blk.{{}}.ffn_{part}_shexp" for part in ("gate", "up", "down")},
    "shared_router": "blk.{}.ffn_gate_inp_shexp",
}


def llama_like(
    config: Config, tied: bool = False, base: float = 10000.0, share: float | None = 1.0, has_share: bool = False
) -> Decoder:
    """What most families have in common. base: where the file has no rope_theta. share: of the channels of a head that
    turn, None where none do; has_share: the file may say another one."""
    heads, width = config.count("num_attention_heads"), config.count("hidden_size")
    head = config.count("head_dim", max(1, width // heads))
    count = config.count("num_hidden_layers")
    if count > 4096:
        raise damaged(f"num_hidden_layers is {count}")
    if has_share and share is not None:
        share = told(config).real("partial_rotary_factor", config.real("partial_rotary_factor", share))
    turned = None if share is None else rotary(config, int(head * share), base)
    return Decoder(
        vocabulary=config.count("vocab_size"),
        width=width,
        heads=heads,
        groups=config.count("num_key_value_heads", heads),
        head=head,
        hidden=config.count("intermediate_size"),
        context=config.count("max_position_embeddings"),
        layers=(Layer(0, turned),) * count,
        epsilon=config.real("rms_norm_eps", 1e-6),
        activation=config.activation("hidden_act", "silu"),
        tied=config.flag("tie_word_embeddings", tied),
    )


def windowed(config: Config, made: Decoder, every: int = 0) -> Decoder:
    """With windows where the file says that they slide, or else in all layers but each `every`th."""
    window = config.count("sliding_window", 0, least=0)
    if config.has("layer_types"):
        kinds: Sequence[str] = config.texts("layer_types", len(made.layers))
        other = set(kinds) - {FULL, SLIDING}
        if other:
            raise unsupported(f"layers of the kind {', '.join(sorted(other))}")
        slide = [kind == SLIDING for kind in kinds]
    else:
        every = every and config.count("sliding_window_pattern", every)
        slide = [not every or (number + 1) % every > 0 for number in range(len(made.layers))]
    layers = (replace(x, window=window if near else 0) for x, near in zip(made.layers, slide, strict=True))
    return replace(made, layers=tuple(layers))


def partly_turned(config: Config, share: float) -> Decoder:
    """With rotary embeddings of the first channels of a head."""
    return llama_like(config, share=share, has_share=True)


def turned_by_kind(config: Config, made: Decoder, bases: Mapping[str, float]) -> Decoder:
    """With a rotary embedding for each kind of layers. Old files scale that of layers without a window."""
    whole, scaling = config.part("rope_parameters"), config.part("rope_scaling").values
    said = {kind: {"rope_theta": base, **whole.part(kind).values} for kind, base in bases.items()}
    said[FULL] |= scaling
    own = Config({**config.values, "rope_parameters": {**whole.values, **said}, "rope_scaling": None})
    turns = {kind: rotary(own, made.head, kind=kind) for kind in bases}
    layers = (replace(layer, rotary=turns[SLIDING if layer.window else FULL]) for layer in made.layers)
    return replace(made, layers=tuple(layers))
