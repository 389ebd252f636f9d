"""Grading: a patch against the frozen source becomes a typed verdict."""
