"""Graphs that learn: gradients as ordinary nodes."""
