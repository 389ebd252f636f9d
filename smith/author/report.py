"""What authoring came to, as one document and in lines; and what it would come to, before anything is asked."""

from __future__ import annotations

from typing import Any

from smith.author.answers import Answers
from smith.author.ask import TRIES, Question
from smith.author.author import Outcome
from smith.author.client import Settings, ceiling_of
from smith.author.dialects import Message
from smith.author.roles import Roles
from smith.freeze.bundle import Bundle
from smith.ledger.amounts import dollars
from smith.ledger.prices import Prices

NOT_PROVED = (
    "that the instruction reads better, or that the tests and probes are the ones that matter: the gates prove that "
    "nothing is lost or given away and that every part does what it must. This version was tried with scripted answers "
    "only, never with a real model"
)


def result(bundle: Bundle, outcome: Outcome, tree: str | None, device: str) -> dict[str, Any]:
    """The document; ``tree`` is that of the accepted bundle, None where the bundle stays."""
    receipt = outcome.judgement.receipt if outcome.judgement else None
    return {
        "task": bundle.id,
        "accepted": tree is not None,
        "before": bundle.tree,
        "tree": tree or bundle.tree,
        "device": device,
        "design": outcome.number or None,
        "attempts": [
            {
                "number": a.number,
                "accepted": a.accepted,
                "reasons": list(a.reasons),
                "extra_tests": a.extra_tests,
                "wrong": a.wrong,
                "alternatives": a.alternatives,
            }
            for a in outcome.attempts
        ],
        "fail_to_pass": list(receipt.fail_to_pass) if receipt else [],
        "pass_to_pass": list(receipt.pass_to_pass) if receipt else [],
        "probes": [p.model_dump(mode="json") for p in receipt.probes] if receipt else [],
        "open_faults": [f.model_dump(mode="json") for f in outcome.open_faults],
        "notes": outcome.notes,
        "not_proved": [NOT_PROVED],
    }


def lines(document: dict[str, Any]) -> list[str]:
    """The same for people."""
    found = []
    for attempt in document["attempts"]:
        parts = f"{attempt['extra_tests']} extra tests, {attempt['wrong']} wrong, {attempt['alternatives']} alternative"
        said = "passes every gate" if attempt["accepted"] else "rejected"
        found.append(f"design {attempt['number']}: {said} ({parts})")
        found += [f"  {reason}" for reason in attempt["reasons"]]
    for fault in document["open_faults"]:
        found.append(f"review, {fault['severity']}: {fault['document']}: {fault['problem']}")
    found += [f"note: {note}" for note in document["notes"]]
    calls = document["calls"]
    if calls["scope"]:
        unknown = f", {calls['uncertain']} of them uncertain and held" if calls["uncertain"] else ""
        cost = dollars(round(calls["spent_usd"] * 1e6))
        found.append(f"model: {calls['sent']} requests{unknown}; {calls['reused']} kept answers; {cost} so far")
    if document["accepted"]:
        trees = f"{document['before'][:12]} became {document['tree'][:12]}"
        found.append(f"accepted  {document['task']}: {trees}, valid on {document['device']}")
        found.append("next: validate it on other devices; a panel that pins it is made anew")
    else:
        found.append(f"rejected  {document['task']} stays as it was, {document['tree'][:12]}")
    return [*found, f"not proved: {NOT_PROVED}"]


def plan(roles: Roles, kept: Answers, attempts: int, settings: Settings | None, prices: Prices) -> dict[str, Any]:
    """The prompts as far as they can be known before an answer, and what all calls together could cost."""
    investigated = kept.get("investigate", 1, None)
    questions = [] if investigated else [roles.investigate()]
    questions.append(roles.design(investigated.investigate if investigated else None))
    prompts = [{"role": q.role, "system": q.system, "prompt": q.prompt} for q in questions]
    calls, micros = 0, 0
    if settings is not None:
        # Besides the first design there are a review of each and a repair between two.
        for question, times in ((roles.investigate(), 1), (roles.design(None), 2 * attempts)):
            calls += TRIES * times
            micros += TRIES * times * _ceiling(prices, settings, question)
    return {"prompts": prompts, "calls": calls, "ceiling_usd": micros / 1e6}


def _ceiling(prices: Prices, settings: Settings, question: Question) -> int:
    # Later prompts hold earlier answers, which are no longer than an answer may be; four bytes a token is common.
    room = "x" * (4 * settings.max_output_tokens)
    return ceiling_of(prices, settings, question.system, [Message("user", question.prompt + room)]).usd_micros


def plan_lines(document: dict[str, Any]) -> list[str]:
    """A plan for people: the prompts whole."""
    found = []
    for prompt in document["prompts"]:
        role = prompt["role"]
        found += [f"==== {role}: system", prompt["system"], f"==== {role}: prompt", prompt["prompt"]]
    cost = dollars(round(document["ceiling_usd"] * 1e6))
    return [*found, f"==== at most {document['calls']} answers for about {cost} at most; nothing was asked"]
