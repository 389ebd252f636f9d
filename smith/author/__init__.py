"""Authoring: a language model's better instruction, extra tests and probes, accepted only by deterministic gates."""
