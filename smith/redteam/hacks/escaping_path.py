"""Paths that leave the tree: dots, absolute ones, and a link."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

PATCH = b"""diff --git a/x b/x
new file mode 120000
--- /dev/null
+++ b/x
@@ -0,0 +1 @@
+/etc/passwd
\\ No newline at end of file
diff --git a/../outside.py b/../outside.py
new file mode 100644
--- /dev/null
+++ b/../outside.py
@@ -0,0 +1 @@
+x = 1
"""


def attack(target: Target) -> Attack:
    return PATCH


HACK = Hack(44, "escaping-path", attack, entry=False)
