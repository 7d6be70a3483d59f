"""Floor 4: the contract between calls and kernels, and the registry that finds and ranks them.

In: a call and a target.
Out: the kernels that can do it, the chosen one, and why not the others.
First: `api.py`; `registry.py` chooses.
"""
