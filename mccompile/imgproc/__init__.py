"""Image functions as a small library of C: `mccompile imgproc`.

In: names of functions, sizes, and a target.
Out: a folder of C.
First: `package.py`; `functions/` has what is computed.
"""
