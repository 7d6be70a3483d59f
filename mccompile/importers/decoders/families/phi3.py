"""Phi-3 and Phi-4-mini: the matrices of queries, keys and values are one, and so are those of gate and up."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config
from ..description import Decoder
from ..family import LLAMA_NAMES, Family, partly_turned, windowed
from ..told import no_window

_NAMES = {
    **{role: name for role, name in LLAMA_NAMES.items() if role not in ("q", "k", "v", "gate", "up")},
    "qkv": "model.layers.{}.self_attn.qkv_proj",
    "gate_up": "model.layers.{}.mlp.gate_up_proj",
}


def _phi3(config: Config) -> Decoder:
    made = replace(partly_turned(config, 1.0), epsilon=config.real("rms_norm_eps", 1e-5))
    return windowed(config, made)


FAMILIES = (Family(("phi3",), _phi3, _NAMES, architectures=("phi3",), own=no_window, context=4096),)
