from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import CARDS, EXTRACTORS, Adapted, as_frames, cards, open_extractor
from earmark.extractors.contract import Extractor, ExtractorCard, Frames

PLUG_IN = """
import numpy as np

class Plain:
    rate = 8000
    def __init__(self, scale=1.0):
        self.scale = scale
    def extract(self, waveforms):
        return np.array([[self.scale * w.mean(), w.std()] for w in waveforms])

class WithCard(Plain):
    card = {"rate": 22050, "licence": "MIT"}

class BadCard(Plain):
    card = {"rates": 22050}

def make():
    return Plain(3.0)

ready = Plain(5.0)
nothing = 7

class Explodes:
    def __init__(self):
        raise OSError("no weights")

class Mute:
    pass
"""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder, under a name no other test has imported."""
    name = f"plug_in_{abs(hash(tmp_path)) % 10**9}"
    (tmp_path / f"{name}.py").write_text(PLUG_IN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    return name


def test_every_name_has_a_card_and_every_card_a_name() -> None:
    assert set(CARDS) <= set(EXTRACTORS)
    assert all(name == card.name and card.short_name and card.licence for name, card in CARDS.items())
    assert [card.name for card in cards()] == EXTRACTORS.names()


def test_listing_imports_neither_torch_nor_numba_nor_any_model() -> None:
    code = (
        "import sys; from earmark.extractors.catalogue import cards; cards();"
        "heavy = {'torch', 'numba', 'scipy', 'earmark.extractors.logmel', 'earmark.extractors.learned'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["logmel", "mfcc"])
def test_a_registered_name_opens_with_its_own_card(name: str) -> None:
    made = open_extractor(name, threads=1)
    assert isinstance(made, Extractor)
    assert made.card is CARDS[name]


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UsageError, match='Did you mean "logmel"'):
        open_extractor("log_mel")


def test_an_argument_that_a_registered_name_does_not_take_is_usage() -> None:
    with pytest.raises(UsageError, match="logmel:tiny cannot be made"):
        open_extractor("logmel:tiny")


def test_a_mistyped_name_with_argument_says_what_was_near() -> None:
    with pytest.raises(InputError, match='Did you mean "logmel"'):
        open_extractor("logmell:tiny")


def test_a_plain_class_in_the_current_folder_runs(plug_in: str) -> None:
    made = open_extractor(f"{plug_in}:Plain", scale=2.0)
    assert made.card == ExtractorCard(name="Plain", rate=8000)
    frames = made.extract([np.ones(4, np.float32), np.zeros(9, np.float32)])
    assert [f.valid for f in frames] == [1, 1]
    np.testing.assert_array_equal(frames[0].values, [[2.0, 0.0]])


def test_factories_finished_objects_and_cards_as_dictionaries(plug_in: str) -> None:
    one = [np.ones(4, np.float32)]
    assert open_extractor(f"{plug_in}:make").extract(one)[0].values[0, 0] == 3.0
    assert open_extractor(f"{plug_in}:ready").extract(one)[0].values[0, 0] == 5.0
    assert open_extractor(f"{plug_in}:WithCard").card == ExtractorCard("WithCard", rate=22050, licence="MIT")


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("BadCard", UsageError, "unknown fields: rates"),
        ("nothing", UsageError, "neither a model"),
        ("Mute", UsageError, "no `extract` method"),
        ("Explodes", InputError, "cannot be made: OSError: no weights"),
        ("Missing", InputError, "has no 'Missing'"),
    ],
)
def test_what_cannot_run_says_why(plug_in: str, name: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        open_extractor(f"{plug_in}:{name}")


def test_parameters_of_a_finished_object_and_unknown_ones_are_usage(plug_in: str) -> None:
    with pytest.raises(UsageError, match="takes no parameters"):
        open_extractor(f"{plug_in}:ready", scale=1)
    with pytest.raises(UsageError, match="cannot be made with these parameters"):
        open_extractor(f"{plug_in}:Plain", size=1)


def test_answers_of_many_shapes_become_frames() -> None:
    pair = [np.ones((3, 2)), np.ones((5, 2))]
    assert [f.valid for f in as_frames(pair, 2)] == [3, 5]
    assert [f.values.shape for f in as_frames(np.ones((2, 7)), 2)] == [(1, 7), (1, 7)]
    assert [f.values.shape for f in as_frames(np.ones((2, 4, 7)), 2)] == [(4, 7), (4, 7)]
    assert as_frames([(np.ones((4, 2)), 3)], 1)[0].valid == 3
    assert as_frames([Frames(np.ones((4, 2)), 2)], 1)[0].valid == 2
    assert as_frames([[1.0, 2.0]], 1)[0].values.shape == (1, 2)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "returned NoneType"),
        ("text", "returned str"),
        ([np.ones((2, 2))], "1 items for 2 waveforms"),
        ([np.ones((2, 2, 2)), np.ones((2, 2, 2))], "not \\[T, D\\] numbers"),
        ([np.array(["a"]), np.array(["b"])], "not \\[T, D\\] numbers"),
    ],
)
def test_other_answers_are_refused_in_a_sentence(answer: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        as_frames(answer, 2)


def test_the_models_own_attributes_show_through() -> None:
    class Model:
        sample_rate = 48000.0
        fitted = True

        def extract(self, waveforms: object) -> list[object]:
            return []

    adapted = Adapted(Model())
    assert (adapted.card.rate, adapted.fitted, hasattr(adapted, "fit")) == (48000, True, False)
