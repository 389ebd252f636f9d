"""The instruction of a variant that is not the plain fix.

It is made of what the starting tree and the hidden tests say. Nothing of the pull request's own words is in it: they
tell of another task, and would only give hints to this one.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from smith.errors import BadInput
from smith.freeze.instruction import DEVICE_NAMES, Briefing, Instruction, interface_text, prompt_template, scope_of
from smith.records.task import SmithMetadata, Variant

TEMPLATE = "variant.md.j2"
LANGUAGE_NAMES = {"triton": "Triton", "hip": "HIP C++", "cuda": "CUDA C++", "native": "C for CPUs", "gluon": "Gluon"}
_MOST_SUBJECTS = 3


def render_variant(spec: SmithMetadata, override: Path, briefing: Briefing) -> Instruction:
    """The instruction of a variant. Raises :class:`BadInput` where an overriding prompt fails."""
    # What a speed-up adds is its own business; what was emptied is there, by name.
    own = spec.variant.has_own_start
    kernels = list(spec.kernels) if own else scope_of(spec.kernels, briefing.addition.before)
    names = list(dict.fromkeys(s.rpartition(".")[2].rpartition("::")[2] for k in kernels for s in k.symbols))
    names = names or list(dict.fromkeys(PurePosixPath(k.path).name for k in kernels)) or ["the kernels"]
    more = f" and {len(names) - _MOST_SUBJECTS} more" if len(names) > _MOST_SUBJECTS else ""
    interface = interface_text(briefing.interface)
    to = spec.port.to if spec.port else ""
    try:
        text = prompt_template(TEMPLATE, override).render(
            variant=spec.variant.value,
            subject=", ".join(f"`{name}`" for name in names[:_MOST_SUBJECTS]) + more,
            wanted=LANGUAGE_NAMES.get(to, to),
            origin=[LANGUAGE_NAMES.get(o, o) for o in spec.port.origin] if spec.port else [],
            compiled=any(k.path.endswith(".py") for k in kernels),
            kernels=kernels,
            editable=spec.editable,
            interface=interface,
            behaviours=briefing.demands.behaviours if own else (),
            types=briefing.demands.types,
            tolerances=briefing.demands.tolerances,
            devices=[DEVICE_NAMES[d] for d in spec.devices if d in DEVICE_NAMES],
            interpreter="interpreter" in spec.devices,
            counted=_counted(spec),
        )
    except Exception as error:  # a template is a program of the user's: whatever it raises is theirs to mend
        raise BadInput(f"{override / TEMPLATE}: {error}", hint="mend the prompt or remove it") from error
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
    heads = tuple(f"- `{kernel.path}` (" for kernel in kernels)
    naming = [interface, *(line for line in text.splitlines() if line.startswith(("# ", *heads)))]
    return Instruction(text, "\n".join(naming))


def _counted(spec: SmithMetadata) -> str:
    """Which launches a test must show on the interpreter: of the kernels named, of any in the wanted language, none."""
    if "interpreter" not in spec.devices or not spec.variant.has_own_start:
        return ""
    return "wanted" if spec.variant is Variant.PORT else "named"
