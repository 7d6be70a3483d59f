"""Inputs and outputs as users hand them over: forms, layouts, scales."""
