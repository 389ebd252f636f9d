"""One file a hack: a module with a ``HACK``. A new hack is a new file here, and nothing else."""
