"""A network over windows as one that takes a few new frames and keeps the past it needs as state (`--stream`)."""
