"""Whether a call gave what the reference gave, within what the reference itself can be told to within.

The rule, for each result (an output, a gradient, an input that the call wrote to):

- structure, shape and element type are the reference's; layout too, unless the result is contiguous;
- a result shares memory with nothing that the reference's does not share with; a copy in its place is as good;
- whole numbers are equal; of 8-bit ones that floating point was rounded to, one in a hundred may lie one step apart;
- NaN and infinities stand in the same places;
- elsewhere ``|got - want| <= (units * eps + 4 * error) * (|want| + scale)``. ``eps`` is one unit in the last place of
  the element type and ``scale`` the root mean square of the reference's result. ``units`` is 64 for single and 2 for
  half precision. ``error`` was measured when the workload was recorded: how far the reference moves, at most and
  relative to ``|want| + scale``, when its inputs move by one unit in their last place; where half precision goes in,
  when it is computed in single instead, its inputs moved by one unit of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from smith.oracle.arrays import EPSILON, Array

UNITS = {"float16": 2.0, "bfloat16": 2.0, "float32": 64.0, "float64": 64.0}
TIMES = 4.0
"""An honest rewrite rounds elsewhere: it may err as much as the reference, in the other direction, and then some."""
STEPS = 0.01
"""Share of the elements of an 8-bit result that may lie one step apart, where floating point goes in."""
WIDEST = 0.25
"""A tolerance of a larger share of the result would tell nothing."""
EIGHT_BITS = ("int8", "uint8")


@dataclass(frozen=True)
class Outcome:
    """What one pass of one call gave. ``error`` is said in place of all else."""

    error: str = ""
    skeleton: Any = None
    outputs: tuple[Array, ...] = ()
    shares: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    """For each output: the inputs, and the other outputs, with which it shares memory."""
    grads: tuple[Array | None, ...] = ()
    inputs: tuple[Array | None, ...] = ()
    """What each input holds afterwards, where it is not what went in."""
    overwritten: tuple[int, ...] = ()
    """Outputs of the pass before whose values this one changed."""
    seconds: float = field(default=0.0, compare=False)
    reached: bool = field(default=True, compare=False)
    """Whether the call was made and had its time; where not, ``error`` says nothing about it for certain."""

    def results(self) -> Iterator[tuple[str, Array]]:
        """All results by name."""
        for number, array in enumerate(self.outputs):
            yield f"output {number}", array
        for number, grad in enumerate(self.grads):
            if grad is not None:
                yield f"gradient {number}", grad
        for number, given in enumerate(self.inputs):
            if given is not None:
                yield f"input {number} afterwards", given


def difference(want: Outcome, got: Outcome, errors: Mapping[str, float], *, floats: bool = True) -> str:
    """In what ``got`` differs from the reference's ``want``, the first of it in words; empty where it does not.

    ``floats`` says whether floating point goes into the call.
    """
    if got.error:
        return f"raises {got.error}"
    if got.skeleton != want.skeleton and _plain(got.skeleton) != _plain(want.skeleton):
        return f"a result of another structure ({str(got.skeleton)[:80]} for {str(want.skeleton)[:80]})"
    if len(got.outputs) != len(want.outputs):
        return f"{len(got.outputs)} tensors in the result, not {len(want.outputs)}"
    for number, (one, other) in enumerate(zip(want.shares, got.shares, strict=True)):
        if not (set(other[0]) <= set(one[0]) and set(other[1]) <= set(one[1])):
            return f"output {number} shares memory with {_shared(other)}; the reference's with {_shared(one)}"
    if len(got.inputs) != len(want.inputs):
        return f"{len(got.inputs)} tensors went in, not {len(want.inputs)}"
    for number, (before, after) in enumerate(zip(want.inputs, got.inputs, strict=True)):
        if (before is None) is not (after is None):
            return f"input {number} is {'changed' if before is None else 'not changed'} by the call"
    if [g is None for g in want.grads] != [g is None for g in got.grads]:
        return "gradients for other inputs"
    if more := sorted(set(got.overwritten) - set(want.overwritten)):
        return f"a later call overwrites the earlier result {more}"
    for (name, right), (_, found) in zip(want.results(), got.results(), strict=True):
        if words := compare(right, found, errors.get(name, 0.0), floats=floats):
            return f"{name}: {words}"
    return ""


def compare(want: Array, got: Array, error: float, *, floats: bool = True) -> str:
    """In what one result differs, in words; empty where it does not."""
    for what, one, other in (
        ("shape", want.shape, got.shape),
        ("type", want.dtype, got.dtype),
        # Whoever can read a strided result can read a contiguous one.
        ("layout", want.layout, want.layout if got.layout == "contiguous" else got.layout),
    ):
        if one != other:
            return f"{what} {other}, not {one}"
    if want.data == got.data:
        return ""
    return _values(want, got, error, floats)


def _values(want: Array, got: Array, error: float, floats: bool) -> str:
    import numpy as np

    right, found = want.numbers(), got.numbers()
    if not want.is_float:
        wrong = np.nonzero(right != found)[0]
        small = want.dtype in EIGHT_BITS or want.dtype.startswith("float8")
        steps = int(np.abs(right - found).max()) if len(wrong) else 0
        if floats and small and steps <= 1 and len(wrong) <= max(1, STEPS * len(right)):
            return ""
        return _told(want, right, found, wrong)
    finite = np.isfinite(right)
    same = np.where(finite, np.isfinite(found), (right == found) | (np.isnan(right) & np.isnan(found)))
    if not same.all():
        return _told(want, right, found, np.nonzero(~same)[0])
    with np.errstate(invalid="ignore"):
        allowed = tolerance(want.dtype, error) * (np.abs(right) + rms(right))
        wrong = np.nonzero(finite & (np.abs(found - right) > allowed))[0]
    return _told(want, right, found, wrong)


def _told(want: Array, right: Any, found: Any, wrong: Any) -> str:
    import numpy as np

    if not len(wrong):
        return ""
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.abs(found[wrong] - right[wrong]).astype(float), nan=np.inf)
    worst = int(wrong[int(apart.argmax())])
    place = tuple(int(i) for i in np.unravel_index(worst, want.shape)) if want.shape else ()
    return (
        f"{len(wrong)} of {len(right)} values are wrong, worst at {list(place)}: "
        f"{found[worst]:.6g} for {right[worst]:.6g}"
    )


def tolerance(dtype: str, error: float) -> float:
    """How far a result of that type may be off, relative to its own size and that of the whole result."""
    return UNITS[dtype] * EPSILON[dtype] + TIMES * error


def rms(values: Any) -> float:
    """Root mean square of the finite ones."""
    import numpy as np

    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite * finite))) if len(finite) else 0.0


def moved(want: Outcome, other: Outcome) -> dict[str, float] | None:
    """By result, the largest distance between two runs of the reference, relative to value and result.

    None where they cannot be held against each other: another structure, or NaN and infinities in other places.
    """
    import numpy as np

    if want.error or other.error:
        return None
    one, two = dict(want.results()), dict(other.results())
    if one.keys() != two.keys():
        return None
    found = {}
    for name, array in one.items():
        if not array.is_float:
            continue
        right, else_ = array.numbers(), two[name].numbers()
        if len(right) != len(else_) or not two[name].is_float:
            return None
        finite = np.isfinite(right)
        if not (np.isfinite(else_) == finite).all():
            return None
        right, else_ = right[finite], else_[finite]
        size = np.abs(right) + rms(right)
        apart = np.divide(np.abs(right - else_), size, out=np.zeros_like(right), where=size > 0)
        found[name] = float(apart.max()) if len(apart) else 0.0
    return found


def too_wide(want: Outcome, errors: Mapping[str, float]) -> bool:
    """Whether a tolerance would let a good share of any result pass."""
    return any(
        array.is_float and tolerance(array.dtype, errors.get(name, 0.0)) > WIDEST for name, array in want.results()
    )


def tells(want: Outcome) -> bool:
    """Whether there is anything to compare: one finite number."""
    import numpy as np

    return any(len(array.data) and bool(np.isfinite(array.numbers()).any()) for _, array in want.results())


def _plain(skeleton: Any) -> Any:
    """A structure with its floating-point numbers rounded: those are results too, of the caller's arithmetic."""
    if isinstance(skeleton, dict):
        if set(skeleton) == {"number"} and "." in str(skeleton["number"]):
            try:
                return {"number": f"{float(skeleton['number']):.4g}"}
            except ValueError:
                return skeleton
        return {key: _plain(one) for key, one in skeleton.items()}
    return [_plain(one) for one in skeleton] if isinstance(skeleton, list) else skeleton


def _shared(numbers: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    inputs, outputs = numbers
    words = [f"input {n}" for n in inputs] + [f"output {n}" for n in outputs]
    return ", ".join(words) or "nothing"
