"""What a subject of ours is known by: facts that can change a number, and no word about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from earmark.codecs.catalogue import card_of
from earmark.codecs.cells import Confinement
from earmark.codecs.runs import _systems as systems
from earmark.codecs.runs._systems import open_systems
from earmark.extractors.logmel import LogMel
from earmark.pipeline import make_config
from earmark.representations._systems import describe_model
from earmark.runs import strangers
from earmark.runs.store import Cache


def identity(spec: str) -> str:
    return describe_model(make_config({"corpus": "synth:tiny", "extractors": [spec]}).extractors[0]).identity


def test_a_licence_on_a_models_card_computes_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    first, card = identity("logmel"), LogMel().card
    words = replace(card, licence="another", citation="another", title="another", notes="another", short_name="X")
    monkeypatch.setattr(LogMel, "card", words)
    assert identity("logmel") == first
    monkeypatch.setattr(LogMel, "card", replace(card, version="2"))
    assert identity("logmel") != first


def test_a_licence_on_a_codecs_card_computes_nothing_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, card = open_systems(["opus@12"], Cache(str(tmp_path)), Confinement())[0][0].key, card_of("opus@12")
    monkeypatch.setattr(systems, "card_of", lambda spec: replace(card, licence="another", citation="another", notes=""))
    assert open_systems(["opus@12"], Cache(str(tmp_path)), Confinement())[0][0].key == first
    monkeypatch.setattr(systems, "card_of", lambda spec: replace(card, frame_rate=25.0))
    assert open_systems(["opus@12"], Cache(str(tmp_path)), Confinement())[0][0].key != first


def test_a_module_of_ours_counts_by_the_version_it_states(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    logmel, mfcc, opus = (
        identity("logmel"),
        identity("mfcc"),
        open_systems(["opus@12"], Cache(str(tmp_path)), Confinement())[0][0].key,
    )
    real = strangers._read_source

    def stated(file: object, name: str) -> object:
        source = real(file, name)  # type: ignore[arg-type]
        changed = name in ("earmark.extractors.logmel", "earmark.codecs.classical.codec2")
        return source._replace(version=2) if changed else source

    monkeypatch.setattr(strangers, "_read_source", stated)
    assert identity("logmel") != logmel
    assert open_systems(["opus@12"], Cache(str(tmp_path)), Confinement())[0][0].key == opus
    used = "earmark.extractors.logmel" in strangers.code_of_modules(["earmark.extractors.mfcc"], ("earmark.",)).sources
    assert (identity("mfcc") != mfcc) is used
