"""Evaluations: agents on panels, attempt by attempt, resumable at any instant."""
