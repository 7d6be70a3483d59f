"""What a GGUF file says, for a family that has to say what llama.cpp takes where the file is silent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...base.records import dataclass
from .config import Config

_MOST = 4096  # layers


@dataclass(frozen=True)
class Told:
    values: Mapping[str, Any]  # in the words of config.json
    said: Mapping[str, Any]  # by the file's keys behind its architecture
    tensors: Collection[str]

    @property
    def layers(self) -> int:
        return Config(self.values).count("num_hidden_layers")

    def by_layer(self, every: int) -> list[bool]:
        """False for each `every`th layer."""
        return [(number + 1) % every > 0 for number in range(min(self.layers, _MOST))]

    def by_kind(self, base: float) -> dict[str, Any]:
        """Rotary embeddings of layers with a window are not scaled. `base`: of theirs, where the file has none."""
        scaling = self.values.get("rope_scaling") or {"rope_type": "default"}
        near = {"rope_theta": self.said.get("rope.freq_base_swa", base)}
        far = {"rope_theta": self.values["rope_theta"], **scaling}
        return {"rope_scaling": None, "rope_parameters": {"full_attention": far, "sliding_attention": near}}


def no_window(told: Told) -> dict[str, Any]:
    return {"sliding_window": None}


def silent(told: Told) -> dict[str, Any]:
    return {}
