"""Devices ``rocm`` and ``cuda``: tests run on the GPU itself. Nothing is patched but the counting of launches."""
