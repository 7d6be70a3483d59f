"""Qwen2 (and 2.5) and Qwen3, without experts."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config
from ..description import Decoder
from ..family import Family, llama_like, windowed
from ..told import no_window


def qwen(config: Config) -> Decoder:
    made = llama_like(config)
    if config.flag("use_sliding_window") and config.has("sliding_window"):
        if config.has("layer_types"):
            return windowed(config, made)
        first, window = config.count("max_window_layers", 28, least=0), config.count("sliding_window")
        layers = (replace(x, window=window if n >= first else 0) for n, x in enumerate(made.layers))
        return replace(made, layers=tuple(layers))
    return made


FAMILIES = (
    Family(("qwen2",), qwen, architectures=("qwen2",), own=no_window, context=32768),
    Family(("qwen3",), qwen, architectures=("qwen3",), own=no_window, context=32768),
)
