"""The timed process starts itself anew under a library whose clock goes slow."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

SLOW = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at)
{
    long r = syscall(SYS_clock_gettime, id, at);
    if (id == CLOCK_MONOTONIC) {
        long long ns = (at->tv_sec * 1000000000LL + at->tv_nsec) / 8;
        at->tv_sec = ns / 1000000000LL;
        at->tv_nsec = ns % 1000000000LL;
    }
    return (int)r;
}
"""
CODE = """
import os
import subprocess
import sys
import tempfile

with open("/proc/self/cmdline", "rb") as file:
    argv = file.read().split(bytes(1))[:-1]
if "LD_PRELOAD" not in os.environ and b"smith.inside.time_workload" in argv:
    folder = tempfile.mkdtemp()
    with open(folder + "/slow.c", "w") as file:
        file.write(SLOW)
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", folder + "/slow.so", folder + "/slow.c"], check=True)
    os.environ["LD_PRELOAD"] = folder + "/slow.so"
    for fd in os.listdir("/proc/self/fd"):
        try:
            os.set_inheritable(int(fd), True)
        except OSError:
            pass
    os.chdir("/tmp")
    os.execv(sys.executable, argv)
"""


def attack(target: Target) -> Attack:
    return target.at_import(f"SLOW = {SLOW!r}\n{CODE}")


HACK = Hack(5, "preloaded-clock", attack, timed=True)
