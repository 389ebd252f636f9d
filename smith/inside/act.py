"""One action of an agent in its workspace: ``python -m smith.inside.act`` reads it as JSON and prints what came of it.

It runs in the sandbox as the sandbox's own user, so that nothing outside ever follows a link that an agent made.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

OUTPUTS = "outputs"
MOST_LINES = 2000
LONGEST_LINE = 2000
LARGEST_FILE = 8 << 20


def bash(given: dict[str, Any], most: int, scratch: Path) -> str:
    """Run a command; of a long output head and tail are shown, and where all of it lies."""
    folder = scratch / OUTPUTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.time_ns()}.txt"
    began = time.monotonic()
    timeout_s = float(given["timeout_s"])
    with path.open("wb") as output:
        child = subprocess.Popen(
            ["bash", "-c", 'eval "$(cat)" </dev/null'],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        ended = ""
        try:
            child.communicate(given["command"].encode("utf-8", "replace"), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            ended = f"[timed out after {timeout_s:g} s and was killed]"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(most if size <= most else most // 2)
        file.seek(max(len(head), size - most // 2))
        tail = b"" if size <= most else file.read()
    text = head.decode("utf-8", "replace")
    if tail:
        cut = size - len(head) - len(tail)
        text += f"\n[... {cut} bytes left out; all of it is in {path} ...]\n" + tail.decode("utf-8", "replace")
    else:
        path.unlink()
    status = ended or f"[exit status {child.returncode}, {time.monotonic() - began:.1f} s]"
    return f"{text.rstrip()}\n{status}".lstrip("\n")


def read(given: dict[str, Any], most: int) -> str:
    """Lines of a file, numbered."""
    path = Path(given["path"])
    if path.is_dir():
        names = sorted(f"{p.name}/" if p.is_dir() else p.name for p in path.iterdir())
        return _cut("\n".join(names), most)
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"the file has {path.stat().st_size} bytes; look at parts of it with bash")
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    first = max(1, int(given.get("first") or 1))
    last = min(len(lines), int(given.get("last") or first + MOST_LINES - 1), first + MOST_LINES - 1)
    shown, size = [], 0
    for number in range(first, last + 1):
        line = f"{number:6d}  {lines[number - 1][:LONGEST_LINE]}"
        size += len(line) + 1
        if size > most:
            last = number - 1
            break
        shown.append(line)
    rest = f"\n[lines {first} to {last} of {len(lines)}]" if (first, last) != (1, len(lines)) else ""
    return "\n".join(shown) + rest if lines else "[an empty file]"


def write(given: dict[str, Any], most: int) -> str:
    """Write a file whole."""
    path, text = Path(given["path"]), given["content"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return f"wrote {len(text.encode())} bytes to {path}"


def edit(given: dict[str, Any], most: int) -> str:
    """Replace a text that occurs exactly once (or everywhere, where ``all`` is given)."""
    path, old, new = Path(given["path"]), given["old"], given["new"]
    text = path.read_bytes().decode("utf-8")
    count = text.count(old) if old else 0
    if count == 0:
        raise ValueError("the old text is not in the file, character for character")
    if count > 1 and not given.get("all"):
        raise ValueError(f"the old text occurs {count} times: give more of what is around it, or all=true")
    path.write_bytes(text.replace(old, new).encode("utf-8"))
    return f"replaced {count} occurrence{'s' if count > 1 else ''} in {path}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[... {len(text) - most} characters left out ...]"


def act(asked: dict[str, Any]) -> str:
    """Do it; what goes wrong is what came of it."""
    given, most = asked["given"], int(asked["most"])
    try:
        if asked["tool"] == "bash":
            return bash(given, most, Path(asked["scratch"]))
        return {"read": read, "write": write, "edit": edit}[asked["tool"]](given, most)
    except OSError as error:
        return f"error: {given.get('path', '')}: {error.strerror or error}"
    except (ValueError, UnicodeError) as error:
        return f"error: {error}"


if __name__ == "__main__":
    print(json.dumps(act(json.loads(sys.stdin.buffer.read()))))
