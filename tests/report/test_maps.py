"""Maps to listen through: neighbours are the true ones, packing loses nothing that is read, anything may be a label."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

import earmark
from earmark.corpora.clips import Clip
from earmark.errors import InputError, UsageError
from earmark.report._projection import principal_components, project, truth_of
from earmark.report.maps import ClipMap, _packing, map_clips
from earmark.report.maps._clips import clips_of
from earmark.report.maps._sounds import embedded, listening_order, parse_sounds

HOSTILE = [
    "</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>", '"quotes" & \'more\'',
    "\u202egnirts", "=cmd()",
    "line\nbreak\ttab", "a\u2028separator", "日本語", "🐦" * 20, "x" * 5000, "${alert(1)}", "\x00null\x1b[31m",
    "__proto__", "constructor", "\ud800",
]  # fmt: skip


def clouds(
    count: int = 90, dims: int = 8, classes: int = 3, spread: float = 1.0
) -> tuple[np.ndarray, list[str], list[str]]:
    rng = np.random.default_rng(1)
    own = rng.integers(classes, size=count)
    vectors = rng.standard_normal((classes, dims))[own] + spread * rng.standard_normal((count, dims))
    return vectors, [f"class {code}" for code in own], [f"tape {code}" for code in rng.integers(12, size=count)]


def page_data(html: str, name: str = "map-data") -> dict[str, Any]:
    (text,) = re.findall(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def lists_of(html: str, view: int = 0) -> tuple[np.ndarray, np.ndarray]:
    stored = page_data(html)["views"][view]
    rows = _packing.unpacked(stored["neighbours"]).astype(int).reshape(-1, stored["k"]) - 1
    return rows, _packing.unpacked(stored["distances"]).reshape(-1, stored["k"])


def brute(vectors: np.ndarray, distance: str, allowed: np.ndarray, k: int) -> np.ndarray:
    """The k nearest by whole matrices in float64, among the pairs that are allowed."""
    points = vectors
    if distance == "spearman":
        points = vectors.argsort(axis=1).argsort(axis=1).astype(float)
        points -= points.mean(axis=1, keepdims=True)
    if distance != "euclidean":
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    squares = squares.round(10)  # ties go to the lower row
    return np.where(allowed, squares, np.inf).argsort(axis=1, kind="stable")[:, :k]


# --- neighbours -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", ["cosine", "euclidean", "spearman"])
def test_neighbours_of_the_page_are_those_of_whole_matrices(distance: str) -> None:
    vectors, labels, groups = clouds()
    made = map_clips(vectors, labels, groups=groups, distance=distance, across_groups=True, projection="pca")
    other = np.array([[a != b for b in groups] for a in groups])
    rows, _ = lists_of(made.html, 0)
    np.testing.assert_array_equal(rows, brute(vectors, distance, other, 10))
    rows, distances = lists_of(made.html, 1)
    np.testing.assert_array_equal(rows, brute(vectors, distance, ~np.eye(len(vectors), dtype=bool), 10))
    assert (np.diff(distances, axis=1) >= 0).all()
    assert [view["across"] for view in page_data(made.html)["views"]] == [True, False]


@pytest.mark.parametrize("correction", ["none", "icdm", "ls", "csls"])
def test_the_first_neighbour_and_the_values_are_those_of_an_evaluation(correction: str) -> None:
    vectors, labels, _ = clouds(spread=2.0)
    made = map_clips(vectors, labels, correct=correction, projection="pca")
    scores = earmark.evaluate(vectors, labels, correct=correction, metrics="P@1,GSR", per_point=True)
    rows, _ = lists_of(made.html)
    (key,) = [key for key in scores.per_point if key[-1] == "nearest_row"]
    np.testing.assert_array_equal(rows[:, 0], scores.per_point[key])
    stored = page_data(made.html)["views"][0]["values"]
    for name in stored:
        measured = scores.per_point[(*key[:-1], name)]
        np.testing.assert_allclose(_packing.unpacked(stored[name]), measured, rtol=1e-6)
    assert "P@1" in stored


def test_clips_that_an_evaluation_leaves_out_are_nobodys_neighbours_and_still_have_some() -> None:
    vectors, labels, _ = clouds(40)
    given: list[str | None] = [*labels]
    given[3], given[7] = None, "the only one"
    rows, distances = lists_of(map_clips(vectors, given, projection="pca").html)
    assert not np.isin(rows, [3, 7]).any()
    allowed = ~np.eye(40, dtype=bool)
    allowed[:, [3, 7]] = False
    np.testing.assert_array_equal(rows, brute(vectors, "cosine", allowed, 10))
    assert np.isfinite(distances).all()


@pytest.mark.parametrize("labels", [None, ["one"] * 30, [None] * 30, [f"{row}" for row in range(30)]])
def test_without_classes_to_compare_every_clip_is_a_neighbour(labels: Any) -> None:
    vectors, _, _ = clouds(30)
    made = map_clips(vectors, labels, projection="pca")
    rows, _ = lists_of(made.html)
    np.testing.assert_array_equal(rows, brute(vectors, "cosine", ~np.eye(30, dtype=bool), 10))
    assert page_data(made.html)["views"][0]["values"] == {}


# --- packing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "largest"), [("u8", 255), ("u16", 65535), ("u32", 2**32 - 1)])
def test_whole_numbers_take_as_few_bytes_as_they_need(kind: str, largest: int) -> None:
    values = np.array([0, 1, largest])
    stored = _packing.whole_numbers(values)
    assert stored["type"] == kind
    np.testing.assert_array_equal(_packing.unpacked(stored), values)


def test_places_keep_their_proportions_to_a_65536th() -> None:
    points = np.random.default_rng(0).standard_normal((500, 2)) * [3.0, 1.0]
    places = _packing.square(points).astype(float) / _packing.STEPS
    extent = np.ptp(points, axis=0).max()
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    np.testing.assert_allclose((places - 0.5) * extent + middle, points, atol=extent / 65_000)
    assert (_packing.square(np.ones((4, 2))) == 32768).all()


def test_texts_come_back_whatever_they_are_and_cannot_end_the_script() -> None:
    vectors = np.random.default_rng(0).standard_normal((len(HOSTILE), 5))
    made = map_clips(vectors, HOSTILE[::-1], ids=HOSTILE, groups=HOSTILE, title=HOSTILE[0], projection="pca")
    stored = page_data(made.html)
    assert stored["ids"] == [earmark_text(text) for text in HOSTILE]
    names, codes = stored["labels"]["names"], _packing.unpacked(stored["labels"]["codes"])
    assert [names[code - 1] for code in codes] == [earmark_text(text) for text in HOSTILE[::-1]]
    assert made.html.count("<script") == 3
    assert "alert(1)</script>" not in made.html
    body = made.html.split('<script type="application/json"')[0]
    assert "<img" not in body


def earmark_text(text: str) -> str:
    """A label as every table of Earmark has it: composed, without spaces around it."""
    from earmark.vectors.texts import composed

    return composed(text)


def test_a_page_of_5000_clips_stays_far_below_8_megabytes() -> None:
    vectors, labels, groups = clouds(5000, 16, 50)
    ids = [f"recordings/site-{row % 40:02d}/a-recording-with-a-long-name-{row:06d}.wav" for row in range(5000)]
    made = map_clips(vectors, labels, groups=groups, ids=ids, across_groups=True, projection="pca", sounds="none")
    assert len(made.html.encode()) < 2_000_000


def test_the_same_input_gives_the_same_page() -> None:
    vectors, labels, groups = clouds(60)
    pages = {map_clips(vectors, labels, groups=groups).html for _ in range(2)}
    assert len(pages) == 1


def test_the_page_names_the_vectors_it_shows_where_there_is_no_menu_of_them() -> None:
    vectors, labels, _ = clouds(20)
    assert " labels · mfcc · cosine · " in map_clips(vectors, labels, system="mfcc", sounds="none").html


# --- odd input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 11])
@pytest.mark.parametrize("distance", ["cosine", "euclidean", "spearman"])
def test_few_clips_have_a_map(count: int, distance: str) -> None:
    vectors = np.random.default_rng(0).standard_normal((count, 4))
    made = map_clips(vectors, ["ab"[row % 2] for row in range(count)], distance=distance)
    rows, _ = lists_of(made.html)
    assert rows.shape == (count, min(10, max(1, count - 1)))
    assert (rows < count).all()
    assert (rows[0, : count - 1] >= 0).all()


@pytest.mark.parametrize("vectors", [np.zeros((40, 3)), np.ones((40, 3)), np.repeat(np.eye(4), 10, axis=0)])
def test_constant_vectors_and_copies_have_a_map(vectors: np.ndarray) -> None:
    made = map_clips(vectors, ["ab"[row % 2] for row in range(40)])
    rows, distances = lists_of(made.html)
    assert (rows != np.arange(40)[:, None]).all()
    assert np.isfinite(distances).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_without_a_number_are_refused(bad: float) -> None:
    vectors = np.ones((5, 3))
    vectors[2, 1] = bad
    with pytest.raises(InputError, match="NaN or infinity in 1 of 5 rows"):
        map_clips(vectors)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"projection": "magic"}, "choose from auto, pca, tsne, umap"),
        ({"sounds": "loud"}, "a size such as 5MB, or link, or none"),
        ({"k": 0}, "k"),
        ({"distance": "far"}, "Unknown distance"),
        ({"across_groups": True}, "needs groups"),
        ({"labels": ["a"]}, "must pair up"),
        ({"ids": ["a"]}, "must pair up"),
    ],
)
def test_mistakes_are_one_sentence(options: dict[str, Any], words: str) -> None:
    labels = options.pop("labels", None)
    with pytest.raises((InputError, UsageError), match=words):
        map_clips(np.eye(4), labels, **options)


def test_more_clips_than_asked_for_are_drawn_and_the_page_says_so() -> None:
    vectors, labels, _ = clouds(80)
    made = map_clips(vectors, labels, most=30, projection="pca", ids=[f"clip {row}" for row in range(80)])
    stored = page_data(made.html)
    kept = [int(name.removeprefix("clip ")) for name in stored["ids"]]
    assert len(kept) == 30
    rows, _ = lists_of(made.html)
    np.testing.assert_array_equal(rows, brute(vectors[kept], "cosine", ~np.eye(30, dtype=bool), 10))
    assert "30 of 80 clips, drawn at random" in made.html


def test_a_data_frame_is_mapped_by_its_columns() -> None:
    pandas = pytest.importorskip("pandas")
    vectors, labels, groups = clouds(30)
    frame = pandas.DataFrame(vectors, columns=[f"f{place}" for place in range(8)]).assign(kind=labels, tape=groups)
    with_names = map_clips(frame, "kind", groups="tape", projection="pca")
    plain = map_clips(vectors, labels, groups=groups, projection="pca")
    assert page_data(with_names.html) == page_data(plain.html)
    unlabelled = map_clips(frame.drop(columns=["kind", "tape"]), projection="pca")
    assert page_data(unlabelled.html)["labels"]["names"] == []


# --- how true a picture is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("near", [5, 10])
def test_trustworthiness_is_that_of_scikit_learn(near: int) -> None:
    points = np.random.default_rng(0).standard_normal((120, 9))
    mapped = points[:, :2]
    truth = truth_of(points, mapped, near)
    assert truth is not None
    assert truth.trust == pytest.approx(trustworthiness(points, mapped, n_neighbors=near), abs=1e-12)
    lists = [np.argsort(((own - own[:, None]) ** 2).sum(axis=2), axis=1)[:, 1 : near + 1] for own in (points, mapped)]
    shared = np.mean([len({*a} & {*b}) / near for a, b in zip(*lists, strict=True)])
    assert truth.shared == pytest.approx(shared)


def test_of_many_points_a_sample_tells_nearly_the_same() -> None:
    points = np.random.default_rng(0).standard_normal((2500, 6))
    sampled, whole = (truth_of(points, points[:, :2], most=most) for most in (2000, 3000))
    assert sampled is not None
    assert whole is not None
    assert sampled.trust == pytest.approx(whole.trust, abs=0.02)
    assert sampled.shared == pytest.approx(whole.shared, abs=0.02)


def test_a_flat_map_says_how_much_of_the_variance_it_holds() -> None:
    points = np.random.default_rng(0).standard_normal((60, 3)) * [3.0, 2.0, 0.0]
    assert project(points, method="pca").share == pytest.approx(1.0)
    assert project(np.random.default_rng(0).standard_normal((60, 3)), method="tsne").share is None


def test_components_of_large_matrices_are_those_of_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).standard_normal((80, 60)) * np.linspace(5, 0.1, 60)
    exact = principal_components(points, 2)
    monkeypatch.setattr("earmark.report._projection._EXACT", 10)
    np.testing.assert_allclose(principal_components(points, 2), exact, atol=0.05 * np.abs(exact).max())


# --- sounds -----------------------------------------------------------------------------------------------------------


def tones(count: int, seconds: float = 0.5) -> list[Clip]:
    times = np.arange(int(16000 * seconds)) / 16000
    rng = np.random.default_rng(0)
    waves = [
        np.sin(2 * np.pi * (200 + 20 * row) * times) + 0.1 * rng.standard_normal(len(times)) for row in range(count)
    ]
    return [Clip(f"tone {row}.wav", samples=wave.astype(np.float32), rate=16000) for row, wave in enumerate(waves)]


def sounding(count: int = 12, sounds: str = "1MB") -> ClipMap:
    vectors, labels, _ = clouds(count)
    return map_clips(
        vectors, labels, ids=[f"tone {row}.wav" for row in range(count)], audio=tones(count), sounds=sounds
    )


def test_every_clip_is_heard_where_there_is_room() -> None:
    made = sounding()
    stored = page_data(made.html, "map-sounds")
    assert stored["kind"] == "embedded"
    assert sorted(stored["rows"]) == list(range(12))
    assert all(address.startswith("data:audio/") for address in stored["addresses"])
    assert "Each clip can be heard." in made.notes
    assert _packing.unpacked(page_data(made.html)["seconds"]).tolist() == [0.5] * 12


def test_sounds_stay_within_their_budget_and_mistakes_come_first() -> None:
    made = sounding(40, "30kB")
    heard = embedded(made.content, 30_000)
    assert 0 < len(heard.addresses) < 40
    assert sum(map(len, heard.addresses.values())) <= 30_000
    assert set(heard.addresses) <= set(listening_order(made.content)[: len(heard.addresses)])
    labels, nearest = made.content.clips.labels, made.content.views[0].lists.rows[:, 0]
    wrong = {row for row in range(40) if labels[row] != labels[nearest[row]]}
    assert listening_order(made.content)[0] in wrong
    assert f"{len(heard.addresses)} of 40 clips can be heard" in heard.note


def test_a_recording_that_cannot_be_read_costs_only_its_own_sound() -> None:
    clips = tones(6)
    clips[2] = Clip("tone 2.wav", path="gone.wav")
    vectors, labels, _ = clouds(6)
    made = map_clips(vectors, labels, ids=[f"tone {row}.wav" for row in range(6)], audio=clips)
    assert sorted(page_data(made.html, "map-sounds")["rows"]) == [0, 1, 3, 4, 5]
    assert "1 recording could not be read" in made.html


def test_links_lead_from_the_page_to_the_recordings(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    clips = [
        Clip("a", path=str(tmp_path / "so unds" / "a#1.wav"), start=1.0, end=2.5),
        Clip("b", path=str(tmp_path / "b.wav")),
    ]
    made = map_clips(np.eye(2), ["x", "y"], ids=["a", "b"], audio=clips, sounds="link")
    stored = page_data(made.save(tmp_path / "maps" / "map.html").read_text("utf-8"), "map-sounds")
    assert stored["kind"] == "linked"
    assert stored["addresses"] == ["../so%20unds/a%231.wav#t=1.000,2.500", "../b.wav"]
    with pytest.raises(UsageError, match="not known"):
        map_clips(np.eye(2), sounds="link")


@pytest.mark.parametrize("ids", [["a.wav", "b.wav"], ["x/a.wav", "x/b.wav"], ["a", "b"], ["./x/a.wav", "./x/b.wav"]])
def test_sounds_are_found_by_id_by_file_or_by_name(ids: list[str]) -> None:
    clips = [
        Clip("x/a.wav", samples=np.ones(16, np.float32), rate=8000),
        Clip("x/b.wav", samples=np.ones(32, np.float32), rate=8000),
    ]
    made = map_clips(np.eye(2), ids=ids, audio=clips)
    np.testing.assert_allclose(_packing.unpacked(page_data(made.html)["seconds"]), [0.002, 0.004])
    with pytest.raises(InputError, match="No id of the vectors names a sound"):
        map_clips(np.eye(2), ids=["p", "q"], audio=clips)


def test_a_name_that_two_have_names_neither() -> None:
    clips = [Clip(name, samples=np.ones(16, np.float32), rate=8000) for name in ("x/a.wav", "y/a.wav", "x/b.wav")]
    found, notes = clips_of(clips, ["set/x/a.wav", "set/y/a.wav", "set/z/a.wav", "other/b.wav"])
    assert [clip and clip.id for clip in found] == ["x/a.wav", "y/a.wav", None, None]
    assert notes == ["2 clips without a sound."]
    assert clips_of(clips, ["p/b.wav", "q/c.wav"])[0][0] is clips[2]
    with pytest.raises(InputError, match="No id"):
        clips_of(clips, ["p/b.wav", "q/b.wav"])


def test_sizes_of_sounds() -> None:
    assert parse_sounds("5MB") == 5_000_000
    assert parse_sounds(" Link ") == "link"


# --- pages and notebooks ----------------------------------------------------------------------------------------------


def test_a_map_shows_itself_in_a_frame_of_its_own(tmp_path: Path) -> None:
    made = map_clips(np.eye(4), ["a", "a", "b", "b"])
    frame = made._repr_html_()
    assert frame.startswith('<iframe srcdoc="')
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert frame.count("<") == 2
    assert repr(made) == "Map of 4 clips (1 view); save('map.html') writes it."
    with pytest.raises(UsageError, match=r"ends in \.html"):
        made.save(tmp_path / "map.png")


def test_the_page_allows_itself_no_network_and_no_script_but_its_own() -> None:
    html = map_clips(np.eye(4)).html
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src &#x27;none&#x27;")
    assert "unsafe-eval" not in policy
    assert "http:" not in policy
    assert not re.search(r'(src|href)="https?:', html)


def test_of_several_labels_a_neighbour_agrees_that_shares_one_as_in_an_evaluation() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 4))
    texts = rng.choice(["owl", "owl;wren", "wren;owl", "tit;", "tit;wren", "noise"], 60).tolist()
    made = map_clips(vectors, texts, label_separator=";", background="noise", sounds="none")
    data = page_data(made.html)
    assert data["labels"]["names"] == ["noise", "owl", "owl;wren", "tit", "tit;wren"]
    codes = _packing.unpacked(data["labels"]["codes"])
    held = [set(data["labels"]["sets"][code - 1]) for code in codes.tolist()]
    rows, _ = lists_of(made.html)
    hits = earmark.evaluate(
        vectors, texts, label_separator=";", background="noise", metrics="P@1", per_point=True, intervals="none"
    ).per_point["cosine", "none", "all", "P@1"]
    for row, nearest in enumerate(rows[:, 0].tolist()):
        if held[row]:
            assert bool(held[row] & held[nearest]) == bool(hits[row])
        else:
            assert np.isnan(hits[row])
    as_sets = [set(text.strip(";").split(";")) if text != "noise" else set() for text in texts]
    assert page_data(map_clips(vectors, as_sets, sounds="none").html)["labels"]["sets"] == data["labels"]["sets"]
