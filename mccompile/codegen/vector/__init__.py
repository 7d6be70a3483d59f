"""Floats in SIMD: loops along one axis, tiles of sums in registers, epilogues, Winograd."""
