"""The door to language models."""
