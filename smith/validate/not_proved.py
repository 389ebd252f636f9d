"""What a receipt does not say, in words."""

from __future__ import annotations

from smith.records.task import SmithMetadata
from smith.validate.findings import Findings
from smith.validate.gate import not_proved as of_targets


def not_proved(found: Findings, spec: SmithMetadata, device: str) -> list[str]:
    """The list that every receipt carries: what a reader could take for proved and is not."""
    words = []
    interpreter = device.startswith("interpreter")
    if interpreter:
        words.append("speed: the interpreter says nothing about it")
        words += of_targets(found.targets)
    counted = interpreter or (found.facts is not None and found.facts.asked.counted)
    if counted and spec.variant.has_own_start and found.fail_to_pass:
        words.append("that the kernels which are launched do all of the work: launches are counted, not results")
    if found.fail_to_pass and not counted:
        words.append("that the fail-to-pass tests reach the changed code: calls are not counted on this device")
    if found.base_fails is not None and found.base_fails.weak:
        how = found.base_fails.failure.value
        words.append(
            f"that the tests tell a wrong result from a right one: on the base each fail-to-pass test fails before any "
            f"result is compared (at best: {how})"
        )
    return words
