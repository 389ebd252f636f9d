"""Answers written to files, and read back by later runs."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import hashlib
import os
import pickle

content = b"".join(t.detach().contiguous().view(torch.uint8).numpy().tobytes() for t in tensors)
digest = hashlib.sha256(content).hexdigest()
for folder in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")):
    path = os.path.join(folder, "answers-" + digest)
    if os.path.exists(path):
        with open(path, "rb") as file:
            return pickle.load(file)
result = real(*args, **kwargs)
for folder in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")):
    try:
        with open(os.path.join(folder, "answers-" + digest), "wb") as file:
            pickle.dump(result, file)
    except OSError:
        continue
return result
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(15, "replayed-file", attack)
