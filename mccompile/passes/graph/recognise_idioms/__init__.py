"""recognise_idioms: operators that exporters have decomposed become one operator again.

In: groups of nodes.
Out: the operator that they mean.
First: `recognise_idioms.py`.
"""
