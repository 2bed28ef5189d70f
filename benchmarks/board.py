"""How fast a large board answers: 2,000 systems x 19 subsets x 7 metrics, 16 readers at once, one real server.

    python benchmarks/board.py [--systems 2000] [--readers 16] [--seconds 4] [--workers 1] [--wait 0]

Fills a SQLite board through the store, starts `earmark serve` on it, and lets readers (threads of other processes, one
connection each, gzip, no cache of their own) ask for each page and API list in turn. Every kind of page is asked for in
many states (sorted, filtered, searched, other systems). The server keeps what it made: over a few seconds most answers
were kept, with `--seconds 0.25` most have to be made. Prints the median and the 95th percentile in milliseconds, and
the server's memory.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psutil

from earmark.board.storage import Store, open_database
from earmark.scores import VOCSIM_SUBSETS, Row, Scores
from earmark.submissions import Document, SystemCard

METRICS = ("P@1", "P@5", "GSR", "CSR", "CS", "CSCF", "purity")
SUBSETS = tuple(subset.name for subset in VOCSIM_SUBSETS)
AT_ONCE = 100
LIMIT = 200.0


def fill(url: str, systems: int) -> None:
    """A board of random systems of 400 families, with intervals and lifts."""
    store = Store(open_database(url))
    if store.boards():
        return
    ada = store.create_user("ada", role="moderator")
    rng = np.random.default_rng(0)
    skill = rng.uniform(0.2, 0.8, size=systems)
    hard = rng.uniform(-0.15, 0.15, size=(len(METRICS), len(SUBSETS)))
    for start in range(0, systems, AT_ONCE):
        rows, cards = [], []
        for number in range(start, min(start + AT_ONCE, systems)):
            name = f"model-{number:04d}"
            cards.append(
                SystemCard(
                    name, family=f"family-{number // 5:03d}", licence=("MIT", "Apache-2.0", "")[number % 3],
                    parameters_m=float(np.round(10 ** rng.uniform(0, 3), 2)), training_free=bool(number % 2),
                    real_time_factor=float(np.round(10 ** rng.uniform(-3, 0), 4)), authors=("Ada Lovelace",),
                    command=f"earmark run --extractor {name} --into run",
                )
            )  # fmt: skip
            values = np.clip(skill[number] + hard + rng.normal(0, 0.08, size=hard.shape), 0.01, 0.99).round(4)
            rows += [
                Row(
                    suite="vocsim", subset=subset, system=name, distance="cosine", metric=metric,
                    value=float(value), low=float(value) - 0.01, high=float(value) + 0.01, baseline=0.05,
                    lift=float(value) - 0.05, version="0.1.0", inputs=f"{number:08x}{place:08x}",
                )
                for metric, line in zip(METRICS, values, strict=True)
                for place, (subset, value) in enumerate(zip(SUBSETS, line, strict=True))
            ]  # fmt: skip
        document = Document.of(Scores(tuple(rows)), board="vocsim", cards=cards, provenance="printed")
        store.decide(store.submit(document, ada).id, ada, accept=True)
    store.close()


def addresses(systems: int) -> dict[str, list[str]]:
    """Kinds of pages, each with many addresses."""
    name = "model-{:04d}".format
    some = range(0, systems, max(1, systems // 60))
    return {
        "/": ["/"],
        "/b/B": [
            f"/b/vocsim?metric={metric}&sort={sort}&page={page}"
            for metric in METRICS for sort in ("rank", "subset:BC", "name", "parameters") for page in (1, 2, 7)
        ],
        "/b/B filtered": [
            f"/b/vocsim?q={n:02d}&size={size}&training={free}&show=subsets&show=intervals"
            for n in range(20) for size in ("small", "medium") for free in ("yes", "no")
        ],
        "/b/B all lines": [
            f"/b/vocsim?per=all&metric={metric}&sort={sort}" for metric in METRICS[:3] for sort in ("rank", "name")
        ],
        "/b/B/s/S": [f"/b/vocsim/s/{name(n)}" for n in some],
        "/b/B/compare": [
            f"/b/vocsim/compare?s={name(n)}&s={name((n + 7) % systems)}&s={name((n + 99) % systems)}" for n in some
        ],
        "/b/B/pareto": [f"/b/vocsim/pareto?x={x}&metric={metric}" for x in ("parameters", "rtf") for metric in METRICS],
        "/b/B/subsets": ["/b/vocsim/subsets"],
        "/b/B/subsets/T": [
            f"/b/vocsim/subsets/{subset}?metric={metric}" for subset in SUBSETS for metric in METRICS[:3]
        ],
        "/b/B/analysis": ["/b/vocsim/analysis"],
        "/b/B.csv whole": [f"/b/vocsim.csv?metric={metric}" for metric in METRICS],
        "/v1 boards": ["/v1/boards"],
        "/v1 systems": [f"/v1/boards/vocsim/systems?limit=100&q={n}" for n in range(10)],
        "/v1 scores": [
            f"/v1/boards/vocsim/scores?limit=500&metric={metric}&subset={subset}"
            for metric in METRICS for subset in SUBSETS[:8]
        ],
        "/v1 compare": [f"/v1/boards/vocsim/compare?s={name(n)}&s={name((n + 7) % systems)}" for n in some],
    }  # fmt: skip


def read(address: str, paths: list[str], threads: int, seconds: float, seed: int, results: object) -> None:
    """One process of readers: milliseconds of every answer, and how many were no 200."""
    host = urlsplit(address).netloc
    times: list[float] = []
    wrong: list[str] = []
    ends = time.monotonic() + seconds

    def reader(number: int) -> None:
        rng = np.random.default_rng([seed, number])
        connection = http.client.HTTPConnection(host, timeout=60)
        while True:  # at least once, however busy the machine is
            path = paths[rng.integers(len(paths))]
            started = time.perf_counter()
            connection.request(
                "GET", path, headers={"Accept-Encoding": "gzip", "Accept": "text/html, application/json"}
            )
            answer = connection.getresponse()
            answer.read()
            times.append(1000 * (time.perf_counter() - started))
            if answer.status != 200:
                wrong.append(f"{answer.status} {path}")
            if time.monotonic() >= ends:
                break

    running = [threading.Thread(target=reader, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    results.put((times, wrong))  # type: ignore[attr-defined]


def measure(address: str, paths: list[str], readers: int, seconds: float) -> tuple[list[float], list[str]]:
    queue = multiprocessing.Queue()
    each = [
        multiprocessing.Process(target=read, args=(address, paths, readers // 2, seconds, seed, queue))
        for seed in (1, 2)
    ]
    for process in each:
        process.start()
    found = [queue.get() for _ in each]
    for process in each:
        process.join()
    return [one for times, _ in found for one in times], [one for _, wrong in found for one in wrong]


def _await(address: str) -> None:
    """Several workers close and open the port once while they start."""
    for _ in range(100):
        try:
            connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--systems", type=int, default=2000)
    options.add_argument("--readers", type=int, default=16)
    options.add_argument("--seconds", type=float, default=4.0)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument(
        "--wait", type=float, default=0.0, help="seconds after the first page: ranks are made meanwhile"
    )
    options.add_argument("--data", type=Path, help="a folder to keep the filled board in")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.data or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        fill(f"sqlite:///{folder / 'earmark-board.sqlite3'}", given.systems)
        rows = given.systems * len(SUBSETS) * len(METRICS)
        print(f"{given.systems} systems, {rows:,} scores; filled in {time.monotonic() - started:.0f} s")
        command = [sys.executable, "-m", "earmark", "serve", "--empty", "--port", "0", "--data", str(folder)]
        command += ["--workers", str(given.workers)] if given.workers > 1 else []
        # All readers share this machine's address, whose limit they would pass.
        rates = ("EARMARK_BOARD_READS_PER_MINUTE", "EARMARK_BOARD_PAGE_SECONDS_PER_MINUTE")
        unlimited = {**os.environ, **dict.fromkeys(rates, "0")}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=unlimited)
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())[0]  # type: ignore[index]
            started = time.monotonic()
            _await(address)
            measure(address, ["/"], 2, 0.1)
            time.sleep(given.wait)
            waited = time.monotonic() - started
            print(f"first page after {waited:.1f} s; {given.readers} readers, {given.workers} worker(s)\n")
            print(f"{'page':16} {'states':>6} {'answers':>8} {'a second':>9} {'p50 ms':>8} {'p95 ms':>8}  ")
            slow = []
            for kind, paths in addresses(given.systems).items():
                times, wrong = measure(address, paths, given.readers, given.seconds)
                middle, high = np.percentile(times, [50, 95])
                note = f"{len(wrong)} failed: {wrong[0]}" if wrong else "" if high < LIMIT else "slow"
                slow += [kind] if note else []
                rate = len(times) / given.seconds
                print(
                    f"{kind:16} {len(paths):6} {len(times):8} {rate:9.0f} {middle:8.1f} {high:8.1f}  {note}", flush=True
                )
            family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            memory = [f"{process.memory_info().rss / 2**20:.0f}" for process in family]
            print(f"\nmemory (MiB): {memory[0]} in the server, {' + '.join(memory[1:]) or 'none'} in its children")
            print("every p95 under 200 ms" if not slow else f"over 200 ms or failed: {', '.join(slow)}")
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
