"""Floor 3: the second IR. Kernels over buffers, in order, without addresses."""
