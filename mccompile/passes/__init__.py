"""Floor 7: what is done to the IRs, one file a pass. The order stands in pipeline.py.

In: graphs, programs, and a target.
Out: the same, smaller or faster, and at last a plan.
First: `api.py`; `lower.py` makes programs of graphs.
"""
