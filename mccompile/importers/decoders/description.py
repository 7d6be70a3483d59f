"""What a decoder of a language model is: sizes, and which of the usual parts it has. A file's own words become this.

Invariant: everything that the arithmetic depends on is said here or by which weights there are.
"""

from __future__ import annotations

import numpy as np

from ...base.records import dataclass


@dataclass(frozen=True)
class Rotary:
    """Rotary embeddings of queries and keys: halves of the first `2 * len(frequencies)` channels of a head turn."""

    frequencies: np.ndarray  # float32: radians per token
    factor: float = 1.0  # of cosines and sines
    longest: int = 0  # tokens of a text for which this holds; 0: of any


@dataclass(frozen=True)
class Experts:
    """Instead of one MLP: the few of them that a token's scores prefer."""

    count: int
    chosen: int  # by each token
    hidden: int  # channels of an expert
    among_best: bool = True  # the shares of those that are chosen make 1, else those of all
    shared: int = 0  # channels of an expert that all tokens go through; 0: there is none


@dataclass(frozen=True)
class Layer:
    window: int = 0  # how many tokens attention looks back to, its own among them; 0: all
    rotary: Rotary | None = None
    experts: Experts | None = None
    score_factor: float = 1.0  # beside that of all layers


@dataclass(frozen=True)
class Decoder:
    vocabulary: int
    width: int  # of what goes from layer to layer
    heads: int
    groups: int  # heads of keys and values
    head: int  # channels of a head
    hidden: int  # channels of the MLP
    context: int  # tokens
    layers: tuple[Layer, ...]
    epsilon: float = 1e-5
    rms: bool = True  # RMSNorm, else LayerNorm
    activation: str = "silu"
    gated: bool = True
    parallel: bool = False  # attention and MLP read the same, and both are added
    learned: bool = False  # positions have a table
    tied: bool = False  # the head is the table of the embedding
    score_factor: float = 0.0  # of scores; 0: one by the root of the head
    score_cap: float = 0.0  # scores go through tanh to stay below; 0: they do not
    logit_cap: float = 0.0
    embedding_factor: float = 1.0
    residual_factor: float = 1.0
    logit_factor: float = 1.0
    wide_norms: bool = False  # q_norm and k_norm go over all heads
    norms_by_head: bool = False  # q_norm and k_norm go over a head, and each head has its own weights
    late_norms: bool = False  # q_norm and k_norm come behind the rotary embedding
    plain_norms: bool = False  # those of the width have no weights
    unused_positions: int = 0  # rows in front of the table of positions
    slopes: np.ndarray | None = None  # by head: what is added to scores for each position of a key (ALiBi)


ACTIVATIONS = {  # how files call them
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate"), "gelu_tanh"),
    "quick_gelu": "quick_gelu",
    **{name: name for name in ("relu", "relu2", "relu6", "sigmoid", "tanh", "mish")},
}
