"""Costs against counts made by hand on small torch models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.cost import measure_cost

torch = pytest.importorskip("torch")


class Small:
    """One convolution (4 channels, width 10, stride 5) and one linear layer."""

    card = ExtractorCard(name="small", rate=1000)

    def __init__(self, recurrent: bool = False) -> None:
        self.layers = torch.nn.Sequential(torch.nn.Conv1d(1, 4, 10, 5), torch.nn.Linear(199, 7))
        self.again = self.layers  # held twice, counted once
        self.memory = torch.nn.LSTM(7, 3) if recurrent else None

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        with torch.inference_mode():
            found = self.layers(torch.tensor(np.stack(waveforms))[:, None])
            if self.memory is not None:
                found = self.memory(found)[0]
        return [Frames(one.numpy(), len(one)) for one in found]


def test_parameters_and_multiplications_are_what_the_layers_have() -> None:
    cost = measure_cost(Small, batch=2, repeats=2)
    assert cost.parameters == (4 * 10 + 4) + (199 * 7 + 7)
    convolution, linear = 199 * 4 * 10, 4 * 199 * 7
    assert cost.macs_per_second == convolution + linear
    assert cost.device == "cpu"
    assert cost.real_time_factor > 0
    assert cost.notes == ()


def test_longer_clips_cost_more_and_recurrent_layers_are_noted() -> None:
    with pytest.raises(InputError, match="small failed on noise: RuntimeError"):
        measure_cost(Small, seconds=2.0, repeats=1)  # its linear layer takes one second only
    assert measure_cost(lambda: Small(recurrent=True), repeats=1).notes == ("recurrent layers are not in the MACs",)


def test_features_without_weights_cost_no_multiplications() -> None:
    cost = measure_cost(lambda: open_extractor("logmel"), repeats=1)
    assert (cost.parameters, cost.macs_per_second) == (0, 0.0)


def test_what_cannot_be_measured_is_refused() -> None:
    class Pupil(Small):
        def fit(self, clips: object) -> None: ...

    with pytest.raises(UsageError, match="learns from a subset"):
        measure_cost(Pupil)
    with pytest.raises(UsageError, match="positive"):
        measure_cost(Small, seconds=0)


@pytest.mark.parametrize(("name", "parameters", "macs"), [("vae", 8_727_594, 25.9e6), ("ae", 978_880, 302.5e6)])
def test_models_that_learn_are_measured_untrained_and_without_their_decoders(
    name: str, parameters: int, macs: float
) -> None:
    """One second is one patch of the VAE; the AE sees 8.2 s whatever there is. MACs counted layer by layer."""
    cost = measure_cost(lambda: open_extractor(name, device="cpu"), repeats=1)
    assert cost.parameters == parameters
    assert cost.macs_per_second == pytest.approx(macs, rel=0.01)
    assert "untrained weights" in cost.notes[0]
    assert {"vae": "17.43 M", "ae": "1.96 M"}[name] in cost.notes[1]
