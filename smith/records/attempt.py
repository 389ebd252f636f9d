"""Runs and attempts of agents."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from smith.records.base import Document, Oid, TaskId
from smith.records.panel import PanelTask
from smith.records.shown import RunKnowledge, Told


class Ended(StrEnum):
    """How an attempt ended; infrastructure faults are told from a model's before grading."""

    SUBMITTED = "submitted"
    STOPPED = "stopped"
    OUT_OF_BUDGET = "out_of_budget"
    OUT_OF_TIME = "out_of_time"
    STUCK = "stuck"
    PROVIDER_ERROR = "provider_error"
    SANDBOX_FAULT = "sandbox_fault"
    INTERRUPTED = "interrupted"


class RunConfig(Document):
    """All that a run was started with. Frozen at the first start; a resume with another is refused."""

    run: str = Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]*$", max_length=200)
    panel: str
    tasks: tuple[PanelTask, ...]
    agent: str
    agent_options: dict[str, str] = {}
    model: str | None = None
    attempts: int = Field(default=1, ge=1)
    jobs: int = Field(default=1, ge=1)
    device: str = "auto"
    budget_micro_usd: int | None = None
    """The most that the run may cost, in millionths of a dollar."""
    attempt_micro_usd: int | None = None
    """The most that each attempt may cost."""
    timeout_s: float | None = None
    sanitize: bool = Field(default=False, exclude_if=lambda asked: not asked)
    """The panel's policy: what passes must be clean under the sanitizer too."""
    targets: tuple[str, ...] = Field(default=(), exclude_if=lambda targets: not targets)
    """GPUs for which what submissions launch is compiled."""
    knowledge: RunKnowledge | None = Field(default=None, exclude_if=lambda given: given is None)
    """What of the knowledge base attempts are shown; left out for a run that shows nothing."""
    sandbox: str = "bubblewrap"
    created_at: str
    smith: str


class Attempt(Document):
    """One attempt of an agent at one task; its patch lies beside it."""

    run: str
    task: TaskId
    tree: Oid
    attempt: int
    ended: Ended
    detail: str = ""
    patch_sha256: str
    patch_bytes: int
    micro_usd: int = 0
    """Charged, in millionths of a dollar."""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float
    knowledge: Told | None = Field(default=None, exclude_if=lambda told: told is None)
    """What of the knowledge base it was shown; left out in a run that shows nothing."""
