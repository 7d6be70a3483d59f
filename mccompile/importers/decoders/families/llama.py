"""Llama, and what has its form: Mistral, SmolLM, TinyLlama."""

from __future__ import annotations

from ..config import Config
from ..description import Decoder
from ..family import Family, llama_like, windowed
from ..told import no_window

_WINDOW = 4096  # where config.json says nothing of it; with null there is none


def _mistral(config: Config) -> Decoder:
    return windowed(Config({"sliding_window": _WINDOW, **config.values}), llama_like(config))


FAMILIES = (
    Family(
        ("llama",),
        llama_like,
        applies=lambda config: not config.values.get("num_local_experts"),
        architectures=("llama",),
        pairs=True,
        own=no_window,
    ),
    Family(("mistral", "ministral"), _mistral, context=131072),
)
