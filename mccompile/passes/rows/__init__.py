"""Chains of calls that run row by row: which rows each call needs, and how many rows stay in memory.

In: a chain of calls.
Out: the rows that each computes at a time, and those that stay.
First: `row_chains.py`.
"""
