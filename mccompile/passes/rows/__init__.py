"""Chains of calls row by row: which rows each call needs, and how many rows stay in memory."""
