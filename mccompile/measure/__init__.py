"""Floor 11: what a compiled model does on this machine. Results against the reference, layer by layer; time later.

In: a model file and `Options`.
Out: results against a reference, times, sizes, and budgets that hold or not.
First: `correctness.py`; `speed.py` for times.
"""
