"""What a model that knows nothing reaches on well-known datasets, by the dataset's name.

VocSim: one in as many as there are classes, for P@k. MMLU: one in four. HELM: one half where there are two answers, one
in four where there are four. Every other dataset has chance 0 unless the caller says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from earmark import published

_HELM = {
    **dict.fromkeys(("boolq", "imdb", "civilcomments", "raft"), 0.5),
    **dict.fromkeys(("hellaswag", "openbookqa", "truthfulqa", "mmlu"), 0.25),
}
MMLU = 0.25
_MMLU_SUBJECTS = """
abstract algebra; anatomy; astronomy; business ethics; clinical knowledge; college biology; college chemistry; college
computer science; college mathematics; college medicine; college physics; computer security; conceptual physics;
econometrics; electrical engineering; elementary mathematics; formal logic; global facts; high school biology; high
school chemistry; high school computer science; high school european history; high school geography; high school
government and politics; high school macroeconomics; high school mathematics; high school microeconomics; high school
physics; high school psychology; high school statistics; high school us history; high school world history; human aging;
human sexuality; international law; jurisprudence; logical fallacies; machine learning; management; marketing; medical
genetics; miscellaneous; moral disputes; moral scenarios; nutrition; philosophy; prehistory; professional accounting;
professional law; professional medicine; professional psychology; public relations; security studies; sociology; us
foreign policy; virology; world religions; mmlu all subjects; all subjects
"""
_ENOUGH_SUBJECTS = 10
"""Columns that must be subjects of MMLU before `anatomy` or `marketing` is taken for one."""
_PRECISION = re.compile(r"P@[1-9][0-9]*")


def _plain(name: str) -> str:
    """`Abstract Algebra - EM` and `abstract_algebra` are `abstract algebra`; a cut name keeps its dots."""
    return " ".join(re.sub(r"\s+-\s+\S+$", "", name).replace("_", " ").lower().split())


_SUBJECTS = frozenset(" ".join(subject.split()) for subject in _MMLU_SUBJECTS.split(";"))


def _is_subject(name: str) -> bool:
    plain = _plain(name)
    if plain.endswith(("...", "…")):  # leaderboards cut long names
        start = plain.rstrip(".…").strip()
        return len(start) > 8 and any(subject.startswith(start) for subject in _SUBJECTS)
    return plain in _SUBJECTS


def vocsim_chance() -> dict[str, float]:
    """1 / classes of each of VocSim's subsets, from the paper's Table 1."""
    return {row["subset"]: 1 / int(row["n_classes"]) for row in published.read("vocsim_table1_subsets")}


def known_chance(datasets: Iterable[str], metric: str | None = None) -> dict[str, float]:
    """Chance, as a fraction, of the datasets that are known by their names."""
    names = list(datasets)
    found = {name: _HELM[_plain(name)] for name in names if _plain(name) in _HELM}
    subjects = [name for name in names if _is_subject(name)]
    if len(subjects) >= _ENOUGH_SUBJECTS:
        found |= dict.fromkeys(subjects, MMLU)
    if metric is not None and _PRECISION.fullmatch(metric):
        classes = vocsim_chance()
        # `vocsim/BS1` is how a subset is called where several suites stand side by side.
        found |= {name: classes[short] for name in names if (short := name.removeprefix("vocsim/")) in classes}
    return found
