"""Scores: pure functions from grades to figures."""
