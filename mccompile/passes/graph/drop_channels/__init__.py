"""drop_channels: channels that never vary, or that nobody reads, are not computed."""
