"""Freezing: a candidate becomes a task bundle that stands on its own."""
