"""smith: benchmarks and training environments from merged GPU-kernel pull requests."""

__version__ = "0.1.0"
