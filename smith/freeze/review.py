"""What the checks of a data repository refuse: one finding a line, each with a code.

A panel that has been published is a promise: results on it are compared. So what it pins may change only together with
its revision, receipts may be added and never edited, and no lineage may lie on both sides of a split.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from smith import process
from smith.errors import SmithError
from smith.freeze.bundle import Bundle, Store
from smith.freeze.lineages import lineage_of, lineages
from smith.freeze.panels import check_panel, load_panel, load_receipt
from smith.git.objects import list_tree, read_blobs, shown
from smith.git.repository import Repository, clean_environment
from smith.records.panel import Panel
from smith.records.receipt import Receipt, Verdict
from smith.records.task import plain_id


@dataclass(frozen=True)
class Finding:
    """Something that keeps a change out: a typed code, what it is about, and a sentence."""

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.code}: {self.message}"


def review(
    store: Store, *, base: str | None = None, panels: Collection[str] = (), devices: Collection[str] = ()
) -> list[Finding]:
    """Check panels (all, or those named), the bundles that they pin, and with ``base`` what changed since that commit.

    ``devices`` are those on which every pinned task must be valid. Raises :class:`smith.errors.BadInput` for a base
    that is no commit.
    """
    findings: list[Finding] = []
    loaded: dict[str, Panel] = {}
    for name in panels or _names(store.layout.panels):
        try:
            loaded[name] = load_panel(store.layout, name)
        except SmithError as error:
            findings.append(Finding("schema", f"panels/{name}.toml", error.message))
    for name, panel in loaded.items():
        findings += [Finding("pin", f"panels/{name}.toml", fault) for fault in check_panel(store, panel)]
        findings += _devices(panel, devices)
        findings += _policy(store, panel)
        findings += _duplicates(store, panel)
    findings += _broken_bundles(store)
    findings += _splits(loaded.values(), lineages(store.layout))
    if base is not None:
        findings += _since(store, base, loaded)
    return findings


def notes(store: Store, panels: Collection[str] = ()) -> list[str]:
    """What a reader of panels (all, or those named) should know, and what keeps nobody out.

    A line for each pull request that a panel holds several variants of. Panels that do not load are :func:`review`'s
    business.
    """
    said = []
    for name in panels or _names(store.layout.panels):
        try:
            panel = load_panel(store.layout, name)
        except SmithError:
            continue
        variants: defaultdict[str, list[str]] = defaultdict(list)
        for task in panel.tasks:
            variants[plain_id(task.id)].append(task.id)
        said += [
            f"panels/{name}.toml: {', '.join(tasks)} are variants of one pull request, so no independent tasks"
            for tasks in variants.values()
            if len(tasks) > 1
        ]
    return said


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml")) if folder.is_dir() else []


def _devices(panel: Panel, devices: Collection[str]) -> Iterator[Finding]:
    for task in panel.tasks:
        for device in devices:
            if device not in task.receipts:
                yield Finding("device", f"panels/{panel.name}.toml", f"{task.id} pins no receipt for {device}")


def _policy(store: Store, panel: Panel) -> Iterator[Finding]:
    """Receipts that are pinned and do not fulfil what the panel itself asks for."""
    for task in panel.tasks if panel.policy else ():
        for device in task.receipts:
            path = store.layout.receipt(task.id, task.tree, device)
            try:
                receipt = load_receipt(path, task.id, task.tree).receipt
            except SmithError:
                continue  # said elsewhere
            if panel.policy is not None and (refusal := panel.policy.refusal(receipt)):
                yield Finding("policy", f"panels/{panel.name}.toml", f"{task.id}: {refusal}")


def _broken_bundles(store: Store) -> Iterator[Finding]:
    """Every bundle must load, pinned or not: what is broken now is pinned tomorrow."""
    for task in store.ids():
        try:
            store.load(task)
        except SmithError as error:
            yield Finding("schema", f"tasks/{task}", error.message)


def _duplicates(store: Store, panel: Panel) -> Iterator[Finding]:
    """Two tasks of one change count twice in every score. Its variants are other tasks: see :func:`notes`."""
    seen: dict[tuple[str, str], str] = {}
    for task in panel.tasks:
        try:
            bundle = store.load(task.id)
        except SmithError:
            continue  # said elsewhere
        for key in _identities(bundle):
            other = seen.setdefault(key, task.id)
            if other != task.id:
                words = f"{other} and {task.id} are the same {key[0]}"
                yield Finding("duplicate", f"panels/{panel.name}.toml", words)
                break


def _identities(bundle: Bundle) -> Iterator[tuple[str, str]]:
    source = bundle.spec.source
    variant = bundle.id.partition("~")[2]
    yield "upstream change", f"{source.repo.lower()}#{source.pr}~{variant}"
    yield "reference patch", hashlib.sha256(bundle.reference + variant.encode()).hexdigest()


def _splits(panels: Iterable[Panel], known: Mapping[str, str]) -> Iterator[Finding]:
    sides: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for panel in panels:
        if panel.split is None:
            continue
        for task in panel.tasks:
            lineage = lineage_of(known, task.id)
            sides[lineage].setdefault(panel.split, (panel.name, task.id))
    for lineage, found in sorted(sides.items()):
        if len(found) > 1:
            train, held_out = found["train"], found["held_out"]
            yield Finding(
                "split",
                f"panels/{held_out[0]}.toml",
                f"{held_out[1]} is held out, but {train[1]} in panels/{train[0]}.toml is of its lineage ({lineage})",
            )


def _since(store: Store, base: str, panels: Mapping[str, Panel]) -> Iterator[Finding]:
    """What changed since ``base`` and may not."""
    prefix = _prefix(store)
    commit = store.data.resolve(base)
    for path, data in _files(store.data, commit, f"{prefix}panels/"):
        name = Path(path).stem
        if not path.endswith(".toml") or "/" in path:
            continue
        try:
            before = Panel.loads(data, f"panels/{name}.toml")
        except SmithError:
            continue
        yield from _panel_since(before, panels.get(name), f"panels/{name}.toml")
    pinned = {
        store.layout.receipt(task.id, task.tree, device).relative_to(store.layout.tasks).as_posix()
        for panel in panels.values()
        for task in panel.tasks
        for device in task.receipts
    }
    for path, data in _files(store.data, commit, f"{prefix}tasks/receipts/"):
        now = store.layout.tasks / "receipts" / path
        where = f"tasks/receipts/{path}"
        if path.split("/")[-2] == "workloads":
            continue  # named by content in a receipt, which says whether it is the right one
        if not now.is_file():
            if f"receipts/{path}" in pinned:
                yield Finding("receipt", where, "a receipt that a panel pins was removed")
        elif (fault := _edited(data, now.read_bytes(), where)) is not None:
            yield Finding("receipt", where, fault)


def _panel_since(before: Panel, now: Panel | None, where: str) -> Iterator[Finding]:
    if now is None or now.revision > before.revision:
        return
    old, new = ({task.id: (task.tree, task.receipts) for task in panel.tasks} for panel in (before, now))
    gone, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    changed = sorted(task for task in old.keys() & new.keys() if old[task] != new[task])
    parts = [
        f"{what} {', '.join(tasks[:3])}{f' and {len(tasks) - 3} more' if len(tasks) > 3 else ''}"
        for what, tasks in (("pins otherwise", changed), ("lacks", gone), ("adds", added))
        if tasks
    ]
    if before.sanitize is not now.sanitize:
        parts.append("sanitizes submissions" if now.sanitize else "no longer sanitizes submissions")
    if parts:
        yield Finding("revision", where, f"{'; '.join(parts)}, but is still revision {before.revision}")


def _edited(before: bytes, now: bytes, where: str) -> str | None:
    """Why a receipt may not change so: it may be replaced by that of another run, which takes another time."""
    if before == now:
        return None
    try:
        old, new = Receipt.loads(before, where), Receipt.loads(now, where)
    except SmithError as error:
        return error.message
    if (old.seconds, old.arms) == (new.seconds, new.arms):
        return "was edited: its runs are the same, its facts are not"
    if old.verdict is not new.verdict and Verdict.VALID in (old.verdict, new.verdict):
        return f"another run says {new.verdict.value}, where it was {old.verdict.value}: one of them is unstable"
    return None


def _prefix(store: Store) -> str:
    """Where the data repository lies within its git repository."""
    argv = ["git", "rev-parse", "--show-prefix"]
    return process.run(argv, cwd=store.layout.root, env=clean_environment(), timeout_s=60).check().stdout.text.strip()


def _files(repo: Repository, commit: str, folder: str) -> Iterator[tuple[str, bytes]]:
    """Path below ``folder`` and content of every file in it at ``commit``."""
    tree = repo.run("rev-parse", "--verify", "--quiet", f"{commit}:{folder.rstrip('/')}")
    if not tree.ok:
        return
    entries = [entry for entry in list_tree(repo, tree.stdout.text.strip()) if entry.kind == "blob"]
    for entry, (_, data) in zip(entries, read_blobs(repo, (entry.oid for entry in entries)), strict=True):
        if data is not None:
            yield shown(entry.path), data
