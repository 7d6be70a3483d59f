"""recognise_idioms: what exporters spell out becomes one operator again.

In: groups of nodes.
Out: the operator that they mean.
First: `recognise_idioms.py`.
"""
