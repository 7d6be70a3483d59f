"""The operators, one file per family; found by folder."""
