"""GPUs of this machine, seen from outside: what there is, who uses it, whose turn it is, and how a sandbox gets one.

Nothing here imports torch or triton and nothing here runs inside a sandbox. Everything is read below a root folder that
tests replace, and by programs that they replace.
"""
