"""Models for programs in other languages than C."""
