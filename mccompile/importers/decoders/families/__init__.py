"""Families of decoders, a file for each or for close relatives.

In: what a config.json or the keys of a GGUF file say.
Out: the description of a decoder.
First: `llama.py`.
"""

from __future__ import annotations

from ..family import Family
from . import alibi, cohere, custom, experts, falcon, gemma, glm, gpt, gptj, llama, mamba, others, phi, phi3, qwen, rwkv

FAMILIES: tuple[Family, ...] = (
    *llama.FAMILIES,
    *qwen.FAMILIES,
    *experts.FAMILIES,
    *gemma.FAMILIES,
    *phi3.FAMILIES,
    *phi.FAMILIES,
    *gpt.FAMILIES,
    *gptj.FAMILIES,
    *alibi.FAMILIES,
    *falcon.FAMILIES,
    *cohere.FAMILIES,
    *glm.FAMILIES,
    *others.FAMILIES,
    *mamba.FAMILIES,
    *rwkv.FAMILIES,
    *custom.FAMILIES,
)
