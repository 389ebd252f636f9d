"""Attacks on our own grader: every known reward hack as a small program, beside honest solutions."""
