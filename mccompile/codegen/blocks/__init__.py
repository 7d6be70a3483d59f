"""Weights of few bits in blocks: how they are packed, and unpacked in vectors."""
