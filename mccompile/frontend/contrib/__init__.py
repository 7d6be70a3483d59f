"""Operators of other domains, one file each; found by folder (contributed.py)."""
