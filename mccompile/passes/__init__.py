"""Floor 7: what is done to the IRs, one file a pass. The order stands in pipeline.py."""
