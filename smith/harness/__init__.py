"""The outside of a test run: the place it happens in, what is shown to it, and what of its report is believed."""
