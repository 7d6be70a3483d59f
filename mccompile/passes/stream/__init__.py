"""Turns a network over windows into one that reads a few new frames and keeps the past elements it needs as state
(`--stream`).

In: a graph over windows, and its axis of time.
Out: a graph over new frames, with states.
First: `rewrite.py`; `analysis.py` finds what moves.
"""
