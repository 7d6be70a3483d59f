"""A network over windows as one that takes a few new frames and keeps the past it needs as state (`--stream`).

In: a graph over windows, and its axis of time.
Out: a graph over new frames, with states.
First: `rewrite.py`; `analysis.py` finds what moves.
"""
