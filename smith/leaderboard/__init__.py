"""Leaderboards: runs of one panel tree side by side, each with its sealed evidence in the data repository."""
