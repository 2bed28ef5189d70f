"""alpha_precision and beta_recall: supports of growing size, found by a small network trained on the real points.

A network without biases (two hidden layers of 200, ReLU, as many outputs as inputs) learns to send the standardised
real points near one centre (all ones). z are its outputs, a and b levels 0 to 1 in 30 steps:

    P(a)             share of generated z no farther from the centre than the a-quantile of real z
    R(b)             share of real z whose nearest generated z is no farther than their nearest other real z, and lies
                     within the b-quantile of how far those nearest ones are from the mean of generated z
    alpha_precision  1 - 2 sum |P(a) - a| da, beta_recall  1 - 2 sum |R(b) - b| db         [-0.04, 1], higher is better

The network is trained 100 times on all points at once (AdamW, rate 1e-3, decay 1e-2), loss mean |z - centre|^2 / 0.01,
from the same seed each time; its values depend on the seed and a little on the version of torch. Alaa et al., 2022.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import require
from earmark.generated._gicdm import ALONE, Work
from earmark.geometry import spaces
from earmark.geometry.neighbours import nearest

Array = NDArray[Any]
Floats = NDArray[np.float64]

HIDDEN = 200
EPOCHS = 100
RATE, DECAY, NU = 1e-3, 1e-2, 0.01
LEVELS = np.linspace(0.0, 1.0, 30)


class Supports(NamedTuple):
    """Both scores, and the curves they come from, at `LEVELS`."""

    alpha_precision: float
    beta_recall: float
    precision_curve: Floats
    recall_curve: Floats


def one_class(real: Array, generated: Array, *, seed: int = 0, work: Work = ALONE) -> Supports:
    """Train on the real points and compare supports; MissingExtra without torch."""
    z_real, z_generated = outputs(real, generated, seed=seed)
    return supports(z_real, z_generated, work=work)


def supports(z_real: Array, z_generated: Array, *, work: Work = ALONE) -> Supports:
    """Both curves and scores from the outputs of the network, whose centre is all ones."""
    radius_real, radius_generated = _from(1.0, z_real), _from(1.0, z_generated)
    precision = (radius_generated[:, None] <= np.quantile(radius_real, LEVELS)).mean(axis=0)
    first, second = spaces.prepare_pair(z_real, z_generated, "euclidean", threads=work.threads)
    own = nearest(first, 1, **work.options()).distances[:, 0]
    across = nearest(second, 1, queries=first, **work.options())
    met = across.distances[:, 0] <= own
    radius_met = _from(z_generated.mean(axis=0, dtype=np.float64), z_generated[across.places[:, 0]])
    recall = (met[:, None] & (radius_met[:, None] <= np.quantile(radius_met, LEVELS))).mean(axis=0)
    return Supports(_score(precision), _score(recall), precision, recall)


def _from(centre: Any, points: Array) -> Floats:
    return np.asarray(np.sqrt(((points.astype(np.float64) - centre) ** 2).sum(axis=1)))


def _score(curve: Floats) -> float:
    return float(1.0 - 2.0 * np.abs(curve - LEVELS).sum() * (LEVELS[1] - LEVELS[0]))


def outputs(real: Array, generated: Array, *, seed: int = 0) -> tuple[Array, Array]:
    """What the network, trained on the real points, makes of both sets, in float32."""
    torch = require("torch", "alpha_precision and beta_recall", "torch")
    mean, scale = spaces.mean_and_spread(real)
    first, second = (
        torch.from_numpy(((points - mean) / scale).astype(np.float32)) for points in (real, generated)
    )  # fmt: skip
    width = real.shape[1]
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        sizes = [width, HIDDEN, HIDDEN, width]
        layers = [torch.nn.Linear(a, b, bias=False) for a, b in pairwise(sizes)]
        network = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            loss = ((network(first) - 1.0) ** 2).sum(dim=1).mean() / NU
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return network(first).numpy(), network(second).numpy()
