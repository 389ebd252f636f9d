"""The error tree, and how an error becomes an exit code.

::

    SmithError                  anything smith raises on purpose
    ├── BadInput         (2)    wrong use, or an input that cannot be used; one line: what, where, how to mend
    │   ├── RecordError         a file that is not the record it should be
    │   ├── NotARepository      a path or URL that is no git repository
    │   ├── PatchError          a patch that does not apply or leaves the tree
    │   ├── UnknownTask         a task, panel, run or pull request that does not exist
    │   ├── Stale               something pinned has changed since
    │   └── LedgerConflict      what is asked of the ledger contradicts what is written there
    ├── BudgetRefused    (4)    the ledger said no
    │   └── UnknownPrice        nobody knows what a call of this model costs
    ├── Unavailable      (2)    this machine lacks something that was asked for (a device, a sandbox, disk space)
    ├── CommandFailed    (3)    a subprocess failed where it should not have
    └── Defect           (3)    a broken promise inside smith; please report
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_NO = 1
EXIT_BAD_INPUT = 2
EXIT_DEFECT = 3
EXIT_BUDGET = 4
EXIT_INTERRUPTED = 130


class SmithError(Exception):
    """Base of everything smith raises on purpose.

    ``message`` says what is wrong and where, in one line; ``hint`` says how to mend it.
    """

    exit_code = EXIT_DEFECT

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        line = " ".join(self.message.split())
        return f"{line} ({self.hint})" if self.hint else line


class BadInput(SmithError):
    """Wrong use or an unusable input: exit code 2."""

    exit_code = EXIT_BAD_INPUT


class RecordError(BadInput):
    """A file or document that is not a valid record of its kind."""


class NotARepository(BadInput):
    """A path or URL that cannot be read as a git repository."""


class PatchError(BadInput):
    """A patch that does not apply, or that reaches outside the tree.

    ``rule`` is a short typed name (``does_not_apply``, ``escapes_tree``, ``not_editable``, ...), ``path`` the
    offending path where there is one.
    """

    def __init__(self, message: str, *, rule: str, path: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule
        self.path = path


class UnknownTask(BadInput):
    """A task, panel, run or pull request that does not exist."""


class Stale(BadInput):
    """Something pinned (a tree, a receipt) is not what is there now."""


class Unavailable(BadInput):
    """This machine lacks something that was asked for."""


class LedgerConflict(BadInput):
    """What is asked of the ledger contradicts what is written there, such as a second settlement of another amount."""


class BudgetRefused(SmithError):
    """The ledger refused a reservation: exit code 4.

    ``scope`` and ``resource`` name the limit that stood in the way, ``left`` what it still allows and ``asked`` what
    was wanted of it (micro-dollars, tokens or milliseconds).
    """

    exit_code = EXIT_BUDGET

    def __init__(
        self, message: str, *, scope: str = "", resource: str = "", left: int = 0, asked: int = 0, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.scope = scope
        self.resource = resource
        self.left = left
        self.asked = asked


class UnknownPrice(BudgetRefused):
    """Nobody knows what a call of this model costs, so none is made."""


class CommandFailed(SmithError):
    """A subprocess failed where it should not have. Shows command, status and the end of its output."""

    def __init__(self, argv: list[str], status: str, output: str = "") -> None:
        tail = " | ".join(output.strip().splitlines()[-5:])
        super().__init__(f"{' '.join(argv[:8])}: {status}{': ' + tail if tail else ''}")
        self.argv = argv
        self.status = status
        self.output = output


class Defect(SmithError):
    """A broken promise inside smith."""
