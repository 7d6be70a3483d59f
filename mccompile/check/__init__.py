"""Floor 8: what a model should compute, on which inputs, and how far results are from it."""
