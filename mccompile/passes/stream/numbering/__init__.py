"""Global value numbering of programs: elements with equal numbers are certainly computed in the same way from the same
inputs.

Numbers are hashes of 64 bits of how an element comes about, so that equality of whole tensors is a comparison of
arrays. Nothing here knows of windows and pushes, or of the rules that make a step network.

In: programs of two pushes.
Out: numbers of their elements.
First: `numbers.py`.
"""
