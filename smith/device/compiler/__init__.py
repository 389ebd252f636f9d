"""The compile gate: captured launches compiled for a GPU that need not be here, and what the machine code says.

Launches are captured in an interpreter process (``smith.device.interpreter.capture``) and compiled in one without
``TRITON_INTERPRET``, since the interpreter patches the language for good. :mod:`arguments` is the part both share: what
of an argument changes the code, and a stand-in that Triton specialises in the same way.
"""
