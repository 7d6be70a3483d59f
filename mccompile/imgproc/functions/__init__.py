"""One pair of Python and template for each image function.

In: the sizes and element type of an image.
Out: what the template beside it prints.
First: `flip.py`.
"""
