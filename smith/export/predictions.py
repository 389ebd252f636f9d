"""Predictions, SWE-bench's form of submissions: an instance, who made it, and a patch (or none)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pydantic import TypeAdapter, ValidationError

from smith.errors import BadInput, RecordError, SmithError
from smith.evaluate.attempt import PATCH
from smith.evaluate.run import attempt_folder, states
from smith.export.rows import instance_of, read_documents, task_of, write_documents
from smith.export.swebench import Refused
from smith.export.texts import decoded, text_diff
from smith.freeze.bundle import Store
from smith.git.patches import apply
from smith.paths import write_atomically
from smith.records.attempt import Ended, RunConfig
from smith.records.base import Reason, TaskId

UNNAMED = "None"
"""What SWE-bench's harness calls a prediction without a name."""
_KEPT = " +@=,()[]"
_LONGEST = 255
_TASK_ID = TypeAdapter(TaskId)


@dataclass(frozen=True)
class Prediction:
    """``patch`` is None where the model gave none at all, which is not the same as an empty one."""

    instance_id: str
    model: str
    patch: str | None

    def document(self) -> dict[str, str | None]:
        """As SWE-bench writes it."""
        return {"instance_id": self.instance_id, "model_name_or_path": self.model, "model_patch": self.patch}


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions of a file: JSON lines, or JSON as a list or an object by instance.

    Raises :class:`RecordError` naming the place of one that is none.
    """
    return [_prediction(where, value) for where, value in read_documents(path)]


def _prediction(where: str, value: Any) -> Prediction:
    if not isinstance(value, dict) or not isinstance(value.get("instance_id"), str):
        raise RecordError(f"{where}: is no object with an instance_id")
    model, patch = value.get("model_name_or_path", UNNAMED), value.get("model_patch")
    for key, given in (("model_name_or_path", model), ("model_patch", patch)):
        if not isinstance(given, str) and not (given is None and key == "model_patch"):
            raise RecordError(f"{where}: {key} is {type(given).__name__}, not text")
    return Prediction(value["instance_id"], model, patch)


def write_predictions(path: Path, predictions: Sequence[Prediction]) -> None:
    """Write ``.jsonl`` or ``.json``."""
    write_documents(path, [one.document() for one in predictions])


def folder_of(model: str) -> str:
    """A folder's name for a model's, from which :func:`model_of` gives it back. Raises :class:`BadInput`."""
    name = quote(model, safe=_KEPT)
    if not name.strip(".") or name.startswith("."):
        name = name.replace(".", "%2E")
    if not name or len(name) > _LONGEST:
        raise BadInput(f"{model[:60]!r} cannot be the name of a folder", hint="give the model a shorter name")
    return name


def model_of(folder: str) -> str:
    """The model's name for which :func:`folder_of` gave this one."""
    return unquote(folder)


def to_patches(predictions: Sequence[Prediction], out: Path) -> Iterator[Path | Refused]:
    """Write ``out/<model>/<task>.patch`` for each prediction that has a patch; one without gets no file.

    What has no task id, is not UTF-8 or comes twice is refused. Raises :class:`smith.errors.Unavailable` where nothing
    can be written.
    """
    seen: set[Path] = set()
    for one in predictions:
        try:
            task = _TASK_ID.validate_python(task_of(one.instance_id))
            path = out / folder_of(one.model) / f"{task}.patch"
            data = None if one.patch is None else one.patch.encode("utf-8")
        except ValidationError:
            yield Refused(one.instance_id, Reason(code="no_task_id", detail="its name is not owner__repo-number"))
        except BadInput as error:
            yield Refused(one.instance_id, Reason(code="no_folder", detail=str(error)))
        except UnicodeEncodeError:
            yield Refused(one.instance_id, Reason(code="not_utf8", detail="it holds half a character"))
        else:
            if path in seen:
                yield Refused(one.instance_id, Reason(code="twice", detail=f"{one.model} has an earlier prediction"))
            elif data is None:
                yield Refused(one.instance_id, Reason(code="no_patch", detail="model_patch is null"))
            else:
                write_atomically(path, data)
                yield path
            seen.add(path)


def of_run(store: Store, config: RunConfig, *, attempt: int = 1, model: str = "") -> Iterator[Prediction | Refused]:
    """The submissions of one attempt at each task of a run, in panel order; those that are not there are refused.

    ``model`` defaults to the run's model, the folder of its patches, or its agent. A submission that is not UTF-8 is
    written with binary hunks. Raises :class:`BadInput` for an attempt that the run does not have.
    """
    if not 1 <= attempt <= config.attempts:
        raise BadInput(f"{config.run} has no attempt {attempt}", hint=f"it has {config.attempts}")
    name = model or _name(config)
    for state in states(store.layout, config):
        if state.number != attempt:
            continue
        if state.attempt is None:
            yield Refused(state.task, Reason(code="unfinished", detail=f"attempt {attempt} is not finished"))
            continue
        data = (attempt_folder(store.layout, config.run, state.task, attempt) / PATCH).read_bytes()
        if hashlib.sha256(data).hexdigest() != state.attempt.patch_sha256:
            yield Refused(state.task, Reason(code="changed", detail="its patch is not the one that was graded"))
            continue
        instance = instance_of(state.task)
        if not data:
            yield Prediction(instance, name, "" if state.attempt.ended is Ended.SUBMITTED else None)
            continue
        try:
            text = decoded(data)
            if text is None:
                bundle = store.load(state.task)
                store.require_sources(bundle)
                start = bundle.spec.source.tree
                text = text_diff(store.scratch, start, apply(store.scratch, start, data))
        except SmithError as error:
            yield Refused(state.task, Reason(code="no_text", detail=str(error)))
        else:
            yield Prediction(instance, name, text)


def _name(config: RunConfig) -> str:
    if config.model is None and config.agent == "patch" and "patches" in config.agent_options:
        return model_of(Path(config.agent_options["patches"]).name)
    return config.model or config.agent
