"""The command line: parses, constructs what touches the world, and dispatches."""
