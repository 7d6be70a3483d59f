"""Llama, and what has its form: Mistral, SmolLM, TinyLlama."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config
from ..description import Decoder
from ..family import Family, llama_like


def _llama(config: Config) -> Decoder:
    made = llama_like(config)
    return replace(made, layers=tuple(replace(layer, window=0) for layer in made.layers))


FAMILIES = (
    Family(("llama",), _llama, architectures=("llama",), pairs=True),
    Family(("mistral", "ministral"), llama_like),
)
