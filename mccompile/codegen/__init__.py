"""Floor 5: C that several kernels write: loops, tiles, vectors, sums. Kernels use it; nothing here knows a kernel."""
