"""Passes over the Program IR, one file each; pipeline.py has their order."""
