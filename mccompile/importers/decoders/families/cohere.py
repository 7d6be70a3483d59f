"""Cohere (Command R, Aya) and Cohere 2: attention and MLP read one norm, and both are added."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config
from ..description import Decoder
from ..family import LLAMA_NAMES, Family, llama_like, windowed

_NAMES = {role: name for role, name in LLAMA_NAMES.items() if role != "mlp_norm"}


def _cohere(config: Config, base: float = 500000.0) -> Decoder:
    return replace(
        llama_like(config, tied=True, base=base),
        rms=False,
        parallel=True,
        epsilon=config.real("layer_norm_eps", 1e-5),
        logit_factor=config.real("logit_scale", 0.0625),
        norms_by_head=True,
    )


def _cohere2(config: Config) -> Decoder:
    """Rotary embeddings where attention has a window."""
    made = windowed(config.filled(sliding_window=4096), _cohere(config, 10000.0), 4)
    return replace(made, layers=tuple(replace(x, rotary=x.rotary if x.window else None) for x in made.layers))


FAMILIES = (
    Family(("cohere",), _cohere, _NAMES, architectures=("command-r",), pairs=True, neighbours=True, context=8192),
    Family(("cohere2",), _cohere2, _NAMES, architectures=("cohere2",), pairs=True, neighbours=True, context=8192),
)
