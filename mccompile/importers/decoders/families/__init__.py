"""Families of decoders, a file for each or for close relatives."""

from __future__ import annotations

from ..family import Family
from . import gemma, gpt, llama, others, phi3, qwen

FAMILIES: tuple[Family, ...] = (
    *llama.FAMILIES,
    *qwen.FAMILIES,
    *gemma.FAMILIES,
    *phi3.FAMILIES,
    *gpt.FAMILIES,
    *others.FAMILIES,
)
