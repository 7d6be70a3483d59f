"""merge_parallel: convolutions and products over one input become one."""
