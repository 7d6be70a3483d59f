"""Floor 7: passes over the IRs, one file per pass. pipeline.py has their order.

In: graphs, programs, and a target.
Out: the same, smaller or faster, and at last a plan.
First: `api.py`; `lower.py` makes programs of graphs.
"""
