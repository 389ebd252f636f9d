"""Sealing what a run says about one card: a file of evidence, named by its own digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from smith.evaluate.run import RUN_FILE
from smith.freeze.bundle import Store
from smith.knowledge.base import Sealed
from smith.knowledge.controls import digest_of
from smith.knowledge.distil import COMPILERS, Key
from smith.knowledge.effects import effects_of
from smith.records.attempt import RunConfig
from smith.records.card import Aim
from smith.records.sealed import Evidence, Use


def run_digest(store: Store, config: RunConfig) -> str:
    """What a run is called in evidence: the digest of its configuration."""
    return digest_of(store.layout.run(config.run) / RUN_FILE)


def seal(
    key: Key, uses: Sequence[Use], card: str, config: RunConfig, control: RunConfig | None, store: Store, *,
    founding: bool, toolchain: Mapping[str, str],
) -> Sealed:  # fmt: skip
    """The evidence of one run for one card."""
    ordered = tuple(sorted(uses, key=lambda use: (use.task, use.attempt)))
    if control is None and any(use.control is not None for use in ordered):
        control = config  # the other attempts of its pairs
    evidence = Evidence(
        card=card,
        founding=founding,
        run=run_digest(store, config),
        control_run=run_digest(store, control) if control is not None and key.aim is Aim.CORRECTNESS else None,
        panel=config.panel,
        agent=config.agent,
        model=config.model,
        toolchain=dict(sorted(toolchain.items())),
        uses=ordered,
        effects=effects_of(ordered),
    )
    return Sealed(hashlib.sha256(evidence.dumps()).hexdigest(), evidence)


def reseal(sealed: Sealed, uses: Sequence[Use], versions: Mapping[str, str]) -> tuple[bytes, str]:
    """Evidence that uses of ``sealed`` were measured again: its bytes, and the digest that names it."""
    ordered = tuple(sorted(uses, key=lambda use: (use.task, use.attempt)))
    evidence = sealed.evidence.model_copy(
        update={
            "founding": False,
            "again": sealed.digest,
            "toolchain": {name: versions[name] for name in sorted(COMPILERS) if name in versions},
            "uses": ordered,
            "effects": effects_of(ordered),
        }
    )
    data = evidence.dumps()
    return data, hashlib.sha256(data).hexdigest()
