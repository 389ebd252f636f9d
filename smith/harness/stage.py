"""What a sandboxed program sees: the tree, the environment, smith's own few modules; and its variables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import smith
from smith.errors import Unavailable
from smith.gpus.base import is_gpu
from smith.gpus.pinned import PinnedSandbox
from smith.harness.environment import TestEnvironment
from smith.harness.place import Place
from smith.records.recipe import Recipe
from smith.sandbox.base import Bind, Command, Ended, Limits, Sandbox
from smith.sandbox.limits import PATH

SHOWN = ("__init__.py", "inside", "device")
"""What of the package ``smith`` is shown inside; nothing there knows an expectation."""
PRELUDE = "prelude.py"
COMPILE = "compile"
"""The device of a process that compiles and runs no kernel."""
PLUGIN = "smith.device.interpreter.plugin"
NATIVE = "smith.device.native.plugin"


@dataclass(frozen=True)
class Stage:
    """One place as a program inside sees it. Paths are those of the inside."""

    sandbox: Sandbox
    place: Place
    environment: TestEnvironment
    recipe: Recipe
    device: str
    prelude: Path | None = None
    seed: int = 0
    """Of Python's hashing, and of every generator that tests do not seed themselves."""
    trees: Sequence[Path] = ()
    """Further trees, shown read-only beside the place's own."""

    @property
    def source(self) -> str:
        """The source root."""
        return "/smith/source" if self.sandbox.remaps else str(self.place.source)

    @property
    def lib(self) -> str:
        """The folder that holds the package ``smith`` and the prelude."""
        return "/smith/lib" if self.sandbox.remaps else str(self.place.lib)

    @property
    def tmp(self) -> str:
        """Fresh scratch space, and where a program starts."""
        return "/tmp" if self.sandbox.remaps else str(self.place.tmp)

    def tree(self, number: int) -> str:
        """The root of one of the further trees."""
        return f"/smith/trees/{number}" if self.sandbox.remaps else str(self.trees[number])

    @property
    def scratch(self) -> list[str]:
        """Every folder that a program may write to, where the source is read-only."""
        return ["/tmp", "/home/smith", "/dev/shm"] if self.sandbox.remaps else [self.tmp, str(self.place.home)]

    @property
    def kind(self) -> str:
        """The kind of device: the part before the colon."""
        return self.device.partition(":")[0]

    @property
    def plugin(self) -> str | None:
        """The module that sets up the device when it is imported. Raises :class:`Unavailable` for a device that the
        sandbox does not hold."""
        if is_gpu(self.device):
            if not isinstance(self.sandbox, PinnedSandbox) or self.sandbox.gpu.kind != self.kind:
                raise Unavailable(f"tests run on {self.device} only in a sandbox that holds a lease of one")
            return NATIVE
        if self.kind not in ("interpreter", "cpu"):
            raise Unavailable(f"tests cannot be run on the device {self.device} here")
        return PLUGIN if self.kind == "interpreter" else None

    @property
    def prelude_inside(self) -> str | None:
        """Where the recipe's prelude lies."""
        return f"{self.lib}/{PRELUDE}" if self.prelude is not None else None

    def env(self) -> dict[str, str]:
        """The variables. The recipe's come last: whoever wrote it knows the upstream."""
        variables = {
            "PATH": f"{self.environment.python.parent}:{PATH}",
            "PYTHONHASHSEED": str(self.seed),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "OMP_NUM_THREADS": "1",
            "TRITON_CACHE_DIR": f"{self.tmp}/triton",
            "HF_HUB_OFFLINE": "1",
            **({} if self.sandbox.remaps else {"HOME": str(self.place.home), "TMPDIR": self.tmp}),
            **self.environment.env,
        }
        if self.kind == "interpreter":
            variables |= {"SMITH_DEVICE": self.device, "TRITON_INTERPRET": "1"}
            variables |= {"SMITH_PRELUDE": self.prelude_inside} if self.prelude_inside else {}
        if is_gpu(self.device):
            variables |= {"SMITH_DEVICE": self.device}
        variables |= self.recipe.env
        if self.kind == COMPILE:
            variables.pop("TRITON_INTERPRET", None)
        inherited = variables.get("PYTHONPATH")
        return variables | {"PYTHONPATH": f"{self.lib}:{inherited}" if inherited else self.lib}

    def binds(self, *, source_writable: bool = False, scratch_on_disk: bool = False) -> list[Bind]:
        """What is shown. With ``scratch_on_disk`` home and tmp are the place's own folders and not in memory."""
        shown = [Bind(path, str(path)) for path in self.environment.binds]
        shown += [Bind(self.place.source, self.source, source_writable), Bind(self.place.lib, self.lib)]
        shown += [Bind(path, self.tree(number)) for number, path in enumerate(self.trees)]
        if scratch_on_disk and self.sandbox.remaps:
            shown += [Bind(self.place.tmp, "/tmp", True), Bind(self.place.home, "/home/smith", True)]
        return shown

    def module(self, name: str, *arguments: str) -> list[str]:
        """The command that runs a module of ``smith.inside``. ``-P``: the folder it starts in is not on the path."""
        return [str(self.environment.python), "-P", "-m", f"smith.inside.{name}", *arguments]

    def run(
        self,
        argv: Sequence[str],
        limits: Limits,
        *,
        source_writable: bool = False,
        pass_fds: Sequence[int] = (),
        input: bytes | None = None,
        spill: Path | None = None,
        more: Sequence[Bind] = (),
        started: Callable[[int], None] = lambda pid: None,
    ) -> Ended:
        """Run a command in fresh scratch space, starting in ``tmp``; ``more`` is shown besides."""
        self.lay_out()
        return self.sandbox.run(
            Command(
                argv,
                self.tmp,
                limits,
                env=self.env(),
                binds=[*self.binds(source_writable=source_writable), *more],
                pass_fds=pass_fds,
                input=input,
                spill=spill,
                started=started,
            )
        )

    def lay_out(self) -> None:
        """Fresh scratch folders, and copies of what smith shows: one bind, and the checkout stays out of sight."""
        self.place.refresh()
        package, here = self.place.lib / "smith", Path(smith.__file__).parent
        if not package.exists():
            package.mkdir()
            for name in SHOWN:
                if (here / name).is_dir():
                    shutil.copytree(here / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(here / name, package / name)
        if self.prelude is not None:
            shutil.copy(self.prelude, self.place.lib / PRELUDE)
