"""Kernels measured one by one on a target, by as many workers as there are, and what follows from it.

In: calls of a model, and a target.
Out: a file of measurements, which kernels are chosen by.
First: `tune.py`.
"""
