"""Models by one word: torch.hub, s3prl, X-ARES and transformers, each in its published layout, called directly too."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from tests.extractors import tiny_models
from tests.extractors.tiny_models import sound, torch, transformers

from earmark.errors import EarmarkError, InputError, UsageError
from earmark.extractors.adapters.answers import chosen_output
from earmark.extractors.adapters.torch_hub import axes_of, parse_source
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.conformance import check_extractor
from earmark.extractors.contract import LayeredExtractor
from earmark.extractors.model_cards import ADAPTERS
from earmark.representations._systems import describe_model
from earmark.representations.config import ExtractorEntry


def passes(model: Any) -> None:
    """Every check passes, but for the card, which knows no licence."""
    assert {finding.name for finding in check_extractor(model) if finding.status != "pass"} <= {"card"}


def identity(spec: str, **parameters: Any) -> str:
    return describe_model(ExtractorEntry(name="it", spec=spec, parameters=parameters)).identity


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; modules that a test imports are forgotten after it, since others have the same names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


# --- torch.hub ------------------------------------------------------------------------------------------------

HUBCONF = '''
dependencies = ["torch"]

import torch
from tiny_net import TinyNet


def tiny(width=4, pretrained=False):
    """An encoder of samples."""
    model = TinyNet(width)
    if pretrained:
        model.load_state_dict(torch.hub.load_state_dict_from_url("https://weights.invalid/tiny.pt"))
    return model


def with_tools():
    return TinyNet(3), (print, len)


def no_rate():
    model = TinyNet(3)
    del model.sample_rate
    return model


def ten_seconds():
    return torch.nn.Linear(8000, 5)


def frames_of_a_second():
    return torch.nn.Sequential(torch.nn.Linear(8000, 100), torch.nn.Unflatten(1, (20, 5)))


def _hidden():
    return None
'''

TINY_NET = """
import torch


class TinyNet(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        torch.manual_seed(0)
        self.sample_rate = 8000
        self.convolution = torch.nn.Conv1d(1, width, 400, stride=160)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, samples):
        return self.dropout(self.convolution(samples[:, None]))            # [B, D, T]

    def several(self, samples):
        values = self(samples)
        return {"frames": values.transpose(1, 2), "mean": values.mean(2), "layers": [values, 2 * values], "none": None}

    def pair(self, samples):
        return self(samples), None

    def two(self, samples):
        return self(samples), self(samples).mean(2)

    def pooled(self, samples):
        return self(samples).mean(2)

    def squares(self, samples):
        values = self(samples)
        return values.transpose(1, 2) @ values

    def channelled(self, samples):
        assert samples.dim() == 3, "wants channels"
        return self(samples[:, 0])
"""


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text(HUBCONF)
    (folder / "tiny_net.py").write_text(TINY_NET)
    return folder


def directly(folder: Path, clip: np.ndarray, **given: Any) -> np.ndarray:
    model = torch.hub.load(str(folder), "tiny", source="local", **given).eval()
    with torch.inference_mode():
        values: np.ndarray = model(torch.from_numpy(clip)[None])[0].T.numpy()
    return values


def test_an_entry_of_a_folder_is_heard_as_torch_hub_loads_it(here: Path) -> None:
    folder = repository(here / "repo")
    made = open_extractor(f"torchhub:{folder}:tiny?width=6")
    assert (made.card.name, made.card.rate, made.card.dimension, made.card.frame_rate) == ("tiny", 8000, 6, 50.0)
    clip = sound(8000, 0.9)
    np.testing.assert_allclose(made.extract([clip])[0].values, directly(folder, clip, width=6), atol=1e-6)
    passes(made)
    passes(open_extractor("torchhub:./repo:tiny"))


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ("method=several&output=frames", (48, 4)),
        ("method=several&output=mean", (1, 4)),
        ("method=several&output=layers.-1", (48, 4)),
        ("method=pair", (48, 4)),
        ("method=two&output=1", (1, 4)),
        ("method=pooled", (1, 4)),
        ("method=channelled&layout=[batch,channel,time]", (48, 4)),
        ("seconds=0.5&hop=0.25", (69, 4)),  # three windows of 23 frames
        ("output_layout=[batch,time,feature]", (4, 48)),
    ],
)
def test_what_is_called_and_what_is_taken(here: Path, options: str, shape: tuple[int, int]) -> None:
    folder = repository(here / "repo")
    made = open_extractor(f"torchhub:{folder}:tiny?{options}")
    assert made.extract([sound(8000, 1.0)])[0].values.shape == shape


def test_extract_features_comes_before_forward_and_a_network_before_its_tools(here: Path) -> None:
    folder = repository(here / "repo")
    (folder / "tiny_net.py").write_text(
        TINY_NET + "\n    def extract_features(self, samples):\n        return 3 * self(samples)\n"
    )
    clip = sound(8000, 0.5)
    made, plain = (open_extractor(f"torchhub:{folder}:with_tools{end}") for end in ("", "?method=forward"))
    np.testing.assert_allclose(made.extract([clip])[0].values, 3 * plain.extract([clip])[0].values, rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("tiny?method=several", r"returns frames \[1, 48, 4\], mean \[1, 4\], layers list of 2: name one of them"),
        ("tiny?method=several&output=frame", "returns no 'frame' .* Did you mean \"frames\""),
        ("tiny?method=two", r"returns 2 tensors or parts \(0 \[1, 4, 48\], 1 \[1, 4\]\): give the number"),
        ("tiny?method=two&output=2", "give a number from 0 to 1"),
        ("tiny?method=squares", r"answers with shapes \[1, 48, 48\] and \[1, 98, 98\] for 1 s and 2 s"),
        ("tiny?method=channelled", r"fails on 1 s of sound \(AssertionError: wants channels\): give seconds"),
        ("tiny?method=forwards", "has no method 'forwards'. Did you mean \"forward\""),
        ("tiny?widht=3", "does not take|cannot be called with"),
        ("tinny", r'has no entry \'tinny\'. Did you mean "tiny"\? Its own: .*with_tools'),
        ("no_rate", r"does not say which rate it wants: give it, as in \?rate=16000"),
        ("tiny?pretrained=true", "fetches weights and there is no connection .*checkpoints"),
    ],
)
def test_what_is_ambiguous_or_wrong_is_one_sentence(
    here: Path, monkeypatch: pytest.MonkeyPatch, spec: str, words: str
) -> None:
    folder = repository(here / "repo")
    monkeypatch.setenv("TORCH_HOME", str(here / "torch"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", _no_connection)
    with pytest.raises(EarmarkError, match=words) as raised:
        open_extractor(f"torchhub:{folder}:{spec}")
    assert "\n" not in str(raised.value)


def test_a_model_of_one_length_whose_axes_do_not_tell_is_refused(here: Path) -> None:
    spec = f"torchhub:{repository(here / 'repo')}:frames_of_a_second?rate=8000&seconds=1"
    with pytest.raises(UsageError, match=r"hears one length only and answers with \[1, 20, 5\]: say which axis"):
        open_extractor(spec)
    made = open_extractor(f"{spec}&output_layout=[batch,time,feature]")
    assert made.extract([sound(8000, 2.0)])[0].values.shape == (40, 5)


def test_a_model_of_one_length_is_given_windows(here: Path) -> None:
    folder = repository(here / "repo")
    made = open_extractor(f"torchhub:{folder}:ten_seconds?rate=8000&seconds=1")
    assert made.extract([sound(8000, 2.5)])[0].values.shape == (3, 5)
    passes(made)


def _no_connection(*_: Any, **__: Any) -> None:
    raise URLError("no connection")


def test_a_repository_from_torch_hubs_cache_needs_no_connection(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(here / "torch"))
    monkeypatch.setattr(torch.hub, "urlopen", _no_connection)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nothing may be asked"))
    repository(here / "torch" / "hub" / "somebody_sounds_main")
    repository(here / "torch" / "hub" / "somebody_sounds_v1.2")
    for spec in ("somebody/sounds:tiny", "somebody/sounds:v1.2:tiny"):
        made: Any = open_extractor(f"torchhub:{spec}")
        assert made.extract([sound(8000, 1.0)])[0].values.shape == (48, 4)
        for name in ("tiny_net",):
            del sys.modules[name]
    for spec in ("else/where:tiny", "else/where:v1.2:tiny"):  # the remedy keeps the branch or tag that was named
        with pytest.raises(UsageError, match=rf"else/where is not among the .* as in torchhub:{spec}\?trust=true"):
            open_extractor(f"torchhub:{spec}?rate=8000")
    with pytest.raises(InputError, match=r"else/where is not in torch.hub's cache .* give its folder, as in torchhub:"):
        open_extractor("torchhub:else/where:tiny?trust=true")
    (here / "torch" / "hub" / "trusted_list").write_text("known_friend\n")
    with pytest.raises(InputError, match=r"known/friend is not in torch.hub's cache"):
        open_extractor("torchhub:known/friend:tiny")


def test_a_fetched_repository_is_unpacked_trusted_and_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.hub's own way from an archive of GitHub's to the model, without GitHub."""
    import shutil

    monkeypatch.setenv("TORCH_HOME", str(here / "torch"))
    repository(here / "zip" / "sounds-main")
    archive = shutil.make_archive(str(here / "archive"), "zip", here / "zip", "sounds-main")

    def download(url: str, into: str, **_: Any) -> None:
        assert url == "https://github.com/some/sounds/zipball/refs/heads/main" or "some/sounds" in url
        shutil.copy(archive, into)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    monkeypatch.setattr(torch.hub, "_validate_not_a_forked_repo", lambda *_: None)
    made = open_extractor("torchhub:some/sounds:main:tiny?trust=true")
    assert made.extract([sound(8000, 1.0)])[0].values.shape == (48, 4)
    assert "some_sounds" in (here / "torch" / "hub" / "trusted_list").read_text()


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_a_format_alone_is_no_model(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} needs to know which model: write {name}:"):
        open_extractor(name)


def test_spellings_of_entries() -> None:
    assert parse_source("owner/repo:feature/x:entry")[:2] == ("owner/repo", "feature/x")
    for wrong in ("owner/repo", "entry", "a/b:not an entry"):
        with pytest.raises(UsageError, match="names no entry"):
            parse_source(wrong)
    with pytest.raises(InputError, match=r"The folder ./nowhere does not exist"):
        parse_source("./nowhere:entry")


def test_changed_code_is_another_model_and_namesakes_are_refused(here: Path) -> None:
    folder = repository(here / "repo")
    spec = f"torchhub:{folder}:tiny"
    first = identity(spec)
    assert identity(spec) == first
    (folder / "tiny_net.py").write_text(TINY_NET.replace("manual_seed(0)", "manual_seed(1)"))
    assert identity(spec) != first
    other = repository(here / "other")
    with pytest.raises(UsageError, match=r"other has a module tiny_net, and .* is loaded under that name already"):
        open_extractor(f"torchhub:{other}:tiny")


@pytest.mark.parametrize(
    ("one", "two", "axes"),
    [
        ((1, 50, 7), (1, 100, 7), ("batch", "time", "feature")),
        ((1, 7, 50), (1, 7, 100), ("batch", "feature", "time")),
        ((1, 7), (1, 7), ("batch", "feature")),
        ((7,), (7,), ("feature",)),
        ((50, 7), (100, 7), ("time", "feature")),
        ((1, 1, 7), (1, 2, 7), ("batch", "time", "feature")),
        ((1, 1, 7), (1, 1, 7), ("batch", "time", "feature")),
        ((1, 7, 1), (1, 7, 1), ("batch", "feature", "time")),
    ],
)
def test_the_axis_that_grows_is_time(one: tuple[int, ...], two: tuple[int, ...], axes: tuple[str, ...]) -> None:
    assert axes_of(one, two, "it") == axes


@pytest.mark.parametrize(
    ("one", "two"), [((1, 50), (1, 100)), ((1, 12, 7), (1, 12, 7)), ((1, 5, 6, 7), (1, 5, 6, 7)), ((1, 5), (1, 5, 2))]
)
def test_axes_that_do_not_tell_are_refused(one: tuple[int, ...], two: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="say which axis is which"):
        axes_of(one, two, "it")


def test_which_tensor_of_an_answer() -> None:
    a, b = torch.zeros(1, 3), torch.ones(1, 4)
    output = transformers.modeling_outputs.BaseModelOutputWithPooling(last_hidden_state=a, pooler_output=b)
    assert chosen_output(output, "", "it") is a
    assert chosen_output(output, "pooler_output", "it") is b
    assert chosen_output({"x": a, "padding_mask": b}, "", "it") is a
    assert chosen_output([a, [b, a]], "1.0", "it") is b
    for answer in ({"x": a, "features": b}, [a, b], {}, 7, {"names": ["a"]}):
        with pytest.raises(UsageError, match="It returns"):
            chosen_output(answer, "", "It")


# --- s3prl ----------------------------------------------------------------------------------------------------

UPSTREAM = '''
import torch


class UpstreamExpert(torch.nn.Module):
    """As s3prl's upstream/example/expert.py is laid out."""

    def __init__(self, ckpt=None, model_config=None, **kwargs):
        super().__init__()
        self.scale = float(open(ckpt).read()) if ckpt else 1.0
        torch.manual_seed(0)
        self.first = torch.nn.Linear(160, 8)
        self.second = torch.nn.Linear(8, 8)
        self.dropout = torch.nn.Dropout(0.5)

    def get_downsample_rates(self, key):
        return 160

    def forward(self, wavs):
        padded = torch.nn.utils.rnn.pad_sequence(wavs, batch_first=True)
        padded = torch.nn.functional.pad(padded, (0, -padded.shape[1] % 160))
        hidden = self.scale * self.first(padded.unfold(1, 160, 160))
        feature = self.dropout(torch.tanh(self.second(hidden)))
        return {"hidden_states": [hidden, feature], "last_hidden_state": feature}


def my_upstream(*args, **kwargs):
    return UpstreamExpert(*args, **kwargs)


def my_upstream_local(ckpt, *args, **kwargs):
    return UpstreamExpert(ckpt, *args, **kwargs)


def not_one():
    class Other(torch.nn.Module):
        def forward(self, wavs):
            return {"feature": wavs}
    return Other()


nothing = 3
'''


def test_an_upstream_in_s3prls_layout(here: Path) -> None:
    (here / "hubconf_tiny.py").write_text(UPSTREAM)
    (here / "scale.txt").write_text("2.0")
    made: Any = open_extractor("s3prl:hubconf_tiny.py:my_upstream_local?ckpt=scale.txt")
    assert isinstance(made, LayeredExtractor)
    assert (made.card.rate, made.card.dimension, made.card.frame_rate, made.layers) == (16000, 8, 100.0, 1)
    clip = sound(16000, 0.5)
    layers = next(iter(made.extract_layers([clip], [0, -1])))[1]
    with torch.inference_mode():
        expected = made.model([torch.from_numpy(clip)])["hidden_states"]
    np.testing.assert_array_equal(layers[0].values, expected[0][0].numpy())
    np.testing.assert_array_equal(layers[-1].values, made.extract([clip])[0].values)
    passes(made)
    first = open_extractor("s3prl:hubconf_tiny.py:my_upstream?layer=0")
    np.testing.assert_allclose(2 * first.extract([clip])[0].values, layers[0].values, rtol=1e-5)
    key = identity("s3prl:hubconf_tiny.py:my_upstream_local?ckpt=scale.txt")
    (here / "scale.txt").write_text("3.0")
    assert identity("s3prl:hubconf_tiny.py:my_upstream_local?ckpt=scale.txt") != key


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("my_upstream?layer=2", "has layers 0 to 1, or -1 for the last: there is no layer 2"),
        ("my_upstream_local", "cannot be made with"),
        ("my_upstream_local?ckpt=none.txt", "cannot be made .*without a connection give a checkpoint"),
        ("not_one", "returns no list of hidden_states"),
        ("nothing", "is not something that makes an upstream"),
    ],
)
def test_what_is_no_upstream_is_said(here: Path, spec: str, words: str) -> None:
    (here / "hubconf_tiny.py").write_text(UPSTREAM)
    with pytest.raises(EarmarkError, match=words):
        open_extractor(f"s3prl:hubconf_tiny.py:{spec}")


def test_a_name_of_s3prl_without_s3prl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    with pytest.raises(UsageError, match="pip install s3prl"):
        open_extractor("s3prl:wavlm_base")


def test_entries_of_an_installed_s3prl_are_found_without_its_hub(here: Path) -> None:
    """The package's own tree, of which only the upstream that is asked for is imported."""
    for place, text in {
        "__init__.py": "",
        "hub.py": "import a_package_that_is_missing",
        "upstream/__init__.py": "",
        "upstream/tiny/__init__.py": "",
        "upstream/tiny/hubconf.py": UPSTREAM,
        "upstream/old/__init__.py": "",
        "upstream/old/hubconf.py": "import torchaudio_is_missing\n\ndef old_base(*args, **kwargs):\n    return None\n",
    }.items():
        (here / "s3prl" / place).parent.mkdir(parents=True, exist_ok=True)
        (here / "s3prl" / place).write_text(text)
    sys.path.insert(0, str(here))
    made = open_extractor("s3prl:my_upstream")
    assert made.card.dimension == 8
    with pytest.raises(UsageError, match="old_base needs torchaudio_is_missing"):
        open_extractor("s3prl:old_base")
    with pytest.raises(UsageError, match=r"s3prl has no upstream .my_upstrem.\. Did you mean .my_upstream"):
        open_extractor("s3prl:my_upstrem")


# --- X-ARES ---------------------------------------------------------------------------------------------------

ENCODER = '''
import torch
from transformers import Wav2Vec2FeatureExtractor, Wav2Vec2Model


class TinyW2vEncoder(torch.nn.Module):
    """As the encoders among X-ARES' examples are written."""

    def __init__(self, place):
        super().__init__()
        self.processor = Wav2Vec2FeatureExtractor.from_pretrained(place)
        self.model = Wav2Vec2Model.from_pretrained(place)
        self.sampling_rate = 16000
        self.output_dim = 32
        self.hop_size_in_ms = 20

    def forward(self, audio):
        if audio.ndim == 1:
            audio = audio.unsqueeze(0)
        self.model.eval()
        with torch.inference_mode():
            inputs = self.processor(audio.numpy(), sampling_rate=16000, return_tensors="pt")
            return self.model(inputs.input_values).last_hidden_state


class Plain(TinyW2vEncoder):
    pass


class SlowEncoder(TinyW2vEncoder):
    def __init__(self, place):
        super().__init__(place)
        self.hop_size_in_ms = 80


class NarrowEncoder(TinyW2vEncoder):
    def __init__(self, place):
        super().__init__(place)
        self.output_dim = 31


class FlatEncoder(TinyW2vEncoder):
    def forward(self, audio):
        return super().forward(audio).mean(1)


class HoplessEncoder(TinyW2vEncoder):
    def __init__(self, place):
        super().__init__(place)
        del self.hop_size_in_ms


class BrokenEncoder(torch.nn.Module):
    def __init__(self):
        raise OSError("no weights")


class NoModuleEncoder:
    def __init__(self, place):
        pass
'''


@pytest.fixture
def encoder(here: Path) -> Path:
    torch.manual_seed(0)
    tiny_models.speech("Wav2Vec2", here / "w2v")
    (here / "tiny_encoder.py").write_text(ENCODER)
    return here


def test_an_x_ares_encoder_is_heard_as_x_ares_hears_it(encoder: Path) -> None:
    made: Any = open_extractor("xares:tiny_encoder.py:TinyW2vEncoder?place=w2v")
    assert (made.card.rate, made.card.dimension, made.card.frame_rate) == (16000, 32, 50.0)
    clip = sound(16000, 0.7)
    expected = made.model(torch.from_numpy(clip)[None])[0].numpy()
    np.testing.assert_allclose(made.extract([clip])[0].values, expected, atol=1e-6)
    passes(made)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("Plain?place=w2v", r"Plain is not called ...Encoder"),
        ("NoModuleEncoder?place=w2v", "is no torch.nn.Module"),
        ("HoplessEncoder?place=w2v", "has no positive hop_size_in_ms"),
        ("NarrowEncoder?place=w2v", r"answers 2 clips with \[2, 156, 32\], not \[2, T, 31\]"),
        ("SlowEncoder?place=w2v", "gives 156 frames for 3.125 s; its hop_size_in_ms of 80 promises 39"),
        ("FlatEncoder?place=w2v", r"returns \[2, 32\], not a tensor \[batch, time, feature\]"),
        ("TinyW2vEncoder", "cannot be made with"),
        ("BrokenEncoder", "cannot be made: OSError: no weights"),
    ],
)
def test_the_rules_of_x_ares_checker(encoder: Path, spec: str, words: str) -> None:
    with pytest.raises(EarmarkError, match=words):
        open_extractor(f"xares:tiny_encoder.py:{spec}")


def test_an_encoder_without_a_class_is_told(encoder: Path) -> None:
    with pytest.raises(UsageError, match=r"names no class: write xares:tiny_encoder.py:MyEncoder"):
        open_extractor("xares:tiny_encoder.py")


# --- transformers ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_no_family_of_ours(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.Data2VecAudioConfig(**{**tiny_models.SPEECH, "conv_pos_kernel_size": 3})
    transformers.Data2VecAudioModel(config).save_pretrained(place := tmp_path / "d2v")
    extractor = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 16000, "do_normalize": True}
    (place / "preprocessor_config.json").write_text(json.dumps(extractor))
    made: Any = open_extractor(f"transformers:{place}")
    assert (made.card.dimension, made.card.frame_rate, made.layers) == (32, 50.0, 3)
    clip = sound(16000, 0.6)
    features = transformers.Wav2Vec2FeatureExtractor.from_pretrained(place)
    with torch.inference_mode():
        answer = transformers.AutoModel.from_pretrained(place).eval()(
            features(clip, sampling_rate=16000, return_tensors="pt").input_values, output_hidden_states=True
        )
    layers = next(iter(made.extract_layers([clip], [1, -1])))[1]
    np.testing.assert_allclose(layers[1].values, answer.hidden_states[1][0], atol=1e-5)
    np.testing.assert_allclose(layers[-1].values, answer.last_hidden_state[0], atol=1e-5)
    passes(made)
    key = identity(f"transformers:{place}")
    transformers.Data2VecAudioModel(config).save_pretrained(place)
    assert identity(f"transformers:{place}") != key  # other weights in the same folder


REMOTE = """
import torch
from transformers import PreTrainedModel, PretrainedConfig, Wav2Vec2FeatureExtractor
from transformers.modeling_outputs import BaseModelOutput


class TinyRemoteConfig(PretrainedConfig):
    model_type = "tiny_remote"

    def __init__(self, width=6, **rest):
        self.width = width
        super().__init__(**rest)


class TinyRemoteModel(PreTrainedModel):
    config_class = TinyRemoteConfig
    main_input_name = "input_values"

    def __init__(self, config):
        super().__init__(config)
        self.frames = torch.nn.Conv1d(1, config.width, 400, stride=320)
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_values, output_hidden_states=False):
        values = self.frames(input_values[:, None]).transpose(1, 2)
        return BaseModelOutput(last_hidden_state=values, hidden_states=(values,) if output_hidden_states else None)
"""


@pytest.mark.filterwarnings("ignore")
def test_code_beside_the_weights_runs_only_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nothing may be asked"))
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    place = tmp_path / "remote"
    place.mkdir()
    (place / "modeling_tiny_remote.py").write_text(REMOTE)
    kinds = {"AutoConfig": "TinyRemoteConfig", "AutoModel": "TinyRemoteModel"}
    auto = {name: f"modeling_tiny_remote.{kind}" for name, kind in kinds.items()}
    config = {"model_type": "tiny_remote", "width": 6, "auto_map": auto, "architectures": ["TinyRemoteModel"]}
    (place / "config.json").write_text(json.dumps(config))
    extractor = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 16000}
    (place / "preprocessor_config.json").write_text(json.dumps(extractor))
    weights = {"frames.weight": torch.randn(6, 1, 400), "frames.bias": torch.randn(6)}
    tiny_models.save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match=r"comes with code of its own \(modeling_tiny_remote.py\), which would run"):
        open_extractor(f"transformers:{place}")
    made: Any = open_extractor(f"transformers:{place}?trust_remote_code=true")
    assert (made.card.dimension, made.layers) == (6, 0)
    passes(made)


def test_a_clip_longer_than_a_feature_extractor_keeps_is_heard_to_its_end(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.ASTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, max_length=64
    )
    transformers.ASTModel(config).save_pretrained(place := tmp_path / "ast")
    transformers.ASTFeatureExtractor(max_length=64).save_pretrained(place)
    made: Any = open_extractor(f"transformers:{place}")
    assert made.context == 63 * 160 + 400  # samples that 64 windows of 25 ms, every 10 ms, see
    clip = sound(16000, 2.0)
    other = clip.copy()
    other[-4000:] *= -0.5
    first, second = made.extract([clip, other])
    assert not np.allclose(first.values, second.values)
    short = made.extract([clip[: made.context]])[0]
    assert len(first.values) == 4 * len(short.values)


def test_what_transformers_cannot_open(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no folder with config.json, is not on this machine"):
        open_extractor("transformers:nobody/nothing?local_files_only=true")
    (tmp_path / "config.json").write_text('{"model_type": "no_such_model"}')
    with pytest.raises(InputError, match="transformers cannot open"):
        open_extractor(f"transformers:{tmp_path}")
