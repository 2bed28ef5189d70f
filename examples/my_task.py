"""A task of your own: how much louder or softer a codec makes clips, in decibels.

earmark codec run --codecs opus@12 --corpus spoken:4x2 --category speech --tasks my_task:Loudness --into run
"""

import numpy as np

from earmark.probes import Responses, Row, TaskCard
from earmark.scores.metrics import Metric, register

register(Metric("loudness_change", unit="dB", words="level of the coded clip over that of the clean one"))


class Loudness:
    card = TaskCard(name="loudness", metrics=("loudness_change",), categories=("speech", "audio", "music"))

    def listen(self, clips, *, progress=False):
        levels = [10 * np.log10(np.mean(np.square(clip.read()[0])) + 1e-12) for clip in clips]
        return Responses(tuple(clip.id for clip in clips), vectors=np.array(levels, np.float32)[:, None])

    def score(self, clips, clean, coded, *, seed=0):
        before, after = (dict(zip(side.ids, side.vectors[:, 0], strict=True)) for side in (clean, coded))
        changes = [after[name] - before[name] for name in after]
        return [Row(metric="loudness_change", value=float(np.mean(changes)), n=len(changes))]
