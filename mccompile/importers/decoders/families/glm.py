"""GLM 4: half of each head turned, neighbours together; the younger form has norms behind attention and MLP too."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config
from ..description import Decoder
from ..family import LLAMA_NAMES, Family, partly_turned

_GLM = {
    **{role: name for role, name in LLAMA_NAMES.items() if role not in ("gate", "up")},
    "gate_up": "model.layers.{}.mlp.gate_up_proj",
}
_GLM4 = {
    **_GLM,
    "attn_post_norm": "model.layers.{}.post_self_attn_layernorm",
    "mlp_post_norm": "model.layers.{}.post_mlp_layernorm",
}


def _glm(config: Config) -> Decoder:
    return replace(partly_turned(config, 0.5), epsilon=config.real("rms_norm_eps", 1.5625e-07))


FAMILIES = (
    Family(("glm",), _glm, _GLM, neighbours=True, context=131072),
    Family(("glm4",), _glm, _GLM4, architectures=("glm4",), pairs=True, neighbours=True, context=131072),
)
