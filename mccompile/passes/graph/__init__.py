"""Passes over graphs: each improves a graph in place and keeps every node's provenance."""
