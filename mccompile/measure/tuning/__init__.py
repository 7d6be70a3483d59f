"""Kernels measured one by one on a target, by as many workers as there are, and what follows from it."""
