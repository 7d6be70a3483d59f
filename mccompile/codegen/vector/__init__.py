"""Floats in SIMD: loops along one axis, tiles of sums in registers, epilogues, Winograd.

In: the sizes of a float product, convolution or map, and a width of vectors.
Out: C over vectors.
First: `vector_loops.py`; `vector_tiles.py` for products.
"""
