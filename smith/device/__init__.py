"""Devices: what each can prove, and the only rooms of smith that know torch and triton.

Nothing here imports either of them at import time; a control machine needs neither.
"""
