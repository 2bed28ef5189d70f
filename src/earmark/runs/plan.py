"""What a run would do, as lines for people: which steps are done already, which are to run, and about how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earmark.tables import aligned
from earmark.wording import counted


@dataclass(frozen=True)
class PlannedStep:
    """One step of a plan. `seconds` is None where nothing is known yet.

    `again` are the clips among `total` that failed in an earlier run: each run tries them once more.
    """

    step: str
    subset: str
    what: str
    todo: int
    total: int
    unit: str
    seconds: float | None
    again: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        new = self.total - len(self.again)
        if not self.todo:
            return "cached" if new or not self.total else "failed before"
        return "to run" if self.todo == new else "partly cached"


def plan_text(steps: Sequence[PlannedStep], cache_url: str) -> str:
    """The plan for people: a line for each step, then the total."""
    cells = [["step", "subset", "what", "amount", "state", "about"]]
    for step in steps:
        amount = f"{step.todo} of {step.total} {step.unit}"
        about = duration(step.seconds) if step.todo else ""
        cells.append([step.step, step.subset, step.what, amount, step.state, about])
    lines = aligned(cells)
    known = [step.seconds for step in steps if step.seconds is not None]
    todo = sum(bool(step.todo) for step in steps)
    total = f"{'about' if len(known) == len(steps) else 'at least'} {duration(sum(known))}"
    lines += ["", f"{todo} of {counted(len(steps), 'step')} to run, {total if todo else 'nothing to compute'}; "
                  f"cache: {cache_url}"]  # fmt: skip
    again = {(step.subset, clip) for step in steps for clip in step.again}
    if again:
        lines.append(f"{counted(len(again), 'clip')} failed before and will be tried again")
    return "\n".join(lines)


def duration(seconds: float | None) -> str:
    """Seconds as a person says them: 4 s, 12 min, 3.5 h."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
