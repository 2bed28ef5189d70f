"""Metrics of your own: a function whose arguments say what it needs.

earmark run --corpus synth:tiny --extractor logmel --metrics P@1,examples/my_metric.py:both_agree --into run
earmark codec run --codecs opus --corpus spoken --category speech --metrics examples/my_metric.py:level_change
"""

import numpy as np

from earmark.scores import metric


@metric(range=(0, 1), percent=True, words="clips whose two nearest neighbours are both of their class")
def both_agree(neighbours, labels):
    return (labels[neighbours[:, :2]] == labels[:, None]).all(axis=1)


@metric(higher_is_better=False, words="change of level, in decibels")
def level_change(reference, decoded):
    levels = [10 * np.log10(np.mean(np.square(sound)) + 1e-12) for sound in (reference, decoded)]
    return abs(levels[1] - levels[0])
