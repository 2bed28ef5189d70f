"""The map to listen through: time to make it, size, and time until it can be used in Chromium.

    python benchmarks/map.py                      5,000 clips by PCA and by t-SNE, 50,000 by PCA
    python benchmarks/map.py --clips 20000 --projection pca

Made-up vectors of 128 dimensions in 50 classes, ten neighbours of each clip, no sounds. "ready" is from the start of
loading the file until the page has drawn itself and answers a click. Processor seconds stand beside the clock's.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from earmark import map_clips

DIMENSIONS, CLASSES, GROUPS = 128, 50, 200


def made_up(clips: int) -> tuple[np.ndarray, list[str], list[str], list[str]]:
    rng = np.random.default_rng(0)
    own = rng.integers(CLASSES, size=clips)
    vectors = 0.35 * rng.standard_normal((CLASSES, DIMENSIONS))[own] + rng.standard_normal((clips, DIMENSIONS))
    labels = [f"species {number:02d}" for number in own]
    groups = [f"tape {number}" for number in rng.integers(GROUPS, size=clips)]
    ids = [f"recordings/2026/site-{row % 40:02d}/clip-{row:06d}.wav" for row in range(clips)]
    return vectors.astype(np.float32), labels, groups, ids


def opened(page: Path) -> tuple[float, float]:
    """Seconds until the page is ready, and until it has answered a click after that."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        tab = chromium.new_page(viewport={"width": 1280, "height": 900})
        started = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html.ready", state="attached")
        tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        ready = time.perf_counter() - started
        box = tab.locator("#map").bounding_box()
        assert box is not None
        x, y = tab.evaluate("[screenX(0), screenY(0)]")
        tab.mouse.click(box["x"] + x, box["y"] + y)
        tab.wait_for_selector("#clip .near li")
        answered = time.perf_counter() - started - ready
        chromium.close()
    return ready, answered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int)
    parser.add_argument("--projection", default="pca")
    args = parser.parse_args()
    cases = [(args.clips, args.projection)] if args.clips else [(5000, "pca"), (5000, "tsne"), (50_000, "pca")]
    print("clips   projection  made s (cpu)     MB     ready s  click s")
    _ = map_clips(*made_up(200)[:2], sounds="none").html  # compiles what is compiled on first use
    with tempfile.TemporaryDirectory() as folder:
        for clips, projection in cases:
            vectors, labels, groups, ids = made_up(clips)
            clock, cpu = time.perf_counter(), time.process_time()
            made = map_clips(vectors, labels, groups=groups, ids=ids, projection=projection, sounds="none")
            page = made.save(Path(folder) / "map.html")
            clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
            ready, answered = opened(page)
            size = page.stat().st_size / 1e6
            told = f"{clock:6.1f} ({cpu:6.1f})  {size:6.2f}  {ready:8.2f}  {answered:7.2f}"
            print(f"{clips:6d}  {projection:10s}  {told}")


if __name__ == "__main__":
    main()
