"""Which programs of a launch have run one after the other for a reason.

The interpreter runs programs in turn; a GPU does not. Two stores of different programs to one address are ordered only
if the first program went through an atomic after its store, and the second through one on the same address before its
own: a lock, a ticket, a flag. Time is counted in *epochs*; one begins with each program and with each such atomic.
"""

from __future__ import annotations

import bisect

Program = tuple[int, int, int]

MOST_LANES = 64
"""Atomics on larger blocks accumulate and do not synchronise; their addresses are not kept."""


class Order:
    """The epochs of one launch."""

    def __init__(self) -> None:
        self.epoch = 0
        self.first = 0
        """The first epoch of the running program."""
        self._starts: list[int] = []
        self._programs: list[Program] = []
        self._passed: list[list[tuple[int, int]]] = []
        """For each program the atomics that it went through: the epoch that ended with it, and its address."""
        self._flags = False

    def begin(self, program: Program) -> None:
        """The next program starts."""
        self.epoch += 1
        self.first = self.epoch
        self._starts.append(self.first)
        self._programs.append(program)
        self._passed.append([])
        self._flags = False

    def atomic(self, addresses: list[int]) -> None:
        """The running program did an atomic operation on ``addresses``."""
        self._passed[-1] += [(self.epoch, address) for address in addresses]
        self.epoch += 1

    def volatile(self) -> None:
        """The running program read something that must not be cached: a flag of another program, perhaps.

        Flags may be set by plain stores, which are not followed; nothing is then said about this program.
        """
        self._flags = True

    def program_of(self, epoch: int) -> Program:
        """The program whose epoch it is."""
        return self._programs[bisect.bisect_right(self._starts, epoch) - 1]

    def ordered(self, epoch: int) -> bool:
        """Whether what happened in an ``epoch`` of another program surely came before now."""
        if self._flags:
            return True
        number = bisect.bisect_right(self._starts, epoch) - 1
        acquired = {address for _, address in self._passed[-1]}
        return any(address in acquired for when, address in self._passed[number] if when >= epoch)
