"""Write a database of Perch Hoplite with the real package, as tests read it: `python make.py FOLDER`.

    pip install perch-hoplite==1.0.2     windows and annotations
    pip install perch-hoplite==0.1.3     embeddings and labels; as BirdNET-Analyzer 2.4 writes it

Beside the database stands expected.json: what its own functions say of every window.
"""

import json
import sys
from pathlib import Path

import numpy as np
from perch_hoplite.db import interface, sqlite_usearch_impl

target = Path(sys.argv[1])
rng = np.random.default_rng(0)
config = sqlite_usearch_impl.get_default_usearch_config(embedding_dim=8)
expected = []
if hasattr(sqlite_usearch_impl, "SQLiteUSearchDB"):
    from perch_hoplite.db import datatypes

    db = sqlite_usearch_impl.SQLiteUSearchDB.create(target.as_posix(), usearch_cfg=config)
    for site in ("north", "south"):
        deployment = db.insert_deployment(name=site, project="wood")
        for name in ("dawn.wav", f"{site}/dusk.wav"):
            recording = db.insert_recording(filename=name, deployment_id=deployment)
            for number in range(6):
                db.insert_window(recording, [5.0 * number, 5.0 * number + 5], rng.normal(size=8).astype(np.float32))
            kinds = datatypes.LabelType
            db.insert_annotation(recording, [1.0, 2.0], "wren", kinds.POSITIVE, "ada")
            db.insert_annotation(recording, [4.0, 6.5], "owl", kinds.POSITIVE, "ada")
            db.insert_annotation(recording, [11.0, 12.0], "wren", kinds.NEGATIVE, "ada")
            db.insert_annotation(recording, [15.0, 20.0], "wren", kinds.UNCERTAIN, "ada")
    removed = db.get_all_windows()[-1].id
    db.remove_window(removed)
    db.commit()
    for window in db.get_all_windows():
        recording = db.get_recording(window.recording_id)
        labels = sorted(
            annotation.label
            for annotation in db.get_all_annotations()
            if annotation.recording_id == window.recording_id
            and annotation.label_type == datatypes.LabelType.POSITIVE
            and annotation.offsets[0] < window.offsets[1]
            and annotation.offsets[1] > window.offsets[0]
        )
        deployment = db.get_deployment(recording.deployment_id)
        expected.append(
            {
                "recording": recording.filename,
                "deployment": deployment.name,
                "offsets": list(window.offsets),
                "labels": labels,
                "vector": db.get_embedding(window.id).astype(float).tolist(),
            }
        )
else:
    db = sqlite_usearch_impl.SQLiteUsearchDB.create(target.as_posix(), usearch_cfg=config)
    for name in ("/data/field/dawn.wav", "/data/field/site 2/dusk.wav"):
        for number in range(6):
            source = interface.EmbeddingSource(
                "birdnet_analyzer_dataset", name, np.array([3.0 * number, 3.0 * number + 3])
            )
            key = db.insert_embedding(rng.normal(size=8).astype(np.float32), source)
            kinds = interface.LabelType
            if number < 3:
                db.insert_label(interface.Label(key, "wren", kinds.POSITIVE, "ada"))
            if number in (2, 3):
                db.insert_label(interface.Label(key, "owl", kinds.POSITIVE, "ada"))
            if number == 5:
                db.insert_label(interface.Label(key, "owl", kinds.NEGATIVE, "ada"))
    db.commit()
    for key in db.get_embedding_ids():
        source = db.get_embedding_source(key)
        labels = sorted(label.label for label in db.get_labels(key) if label.type == interface.LabelType.POSITIVE)
        expected.append(
            {
                "recording": source.source_id,
                "deployment": "",
                "offsets": [float(x) for x in source.offsets],
                "labels": labels,
                "vector": np.asarray(db.get_embedding(key), float).tolist(),
            }
        )
    db.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
(target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
