"""How fast a large board answers: 2,000 systems x 19 subsets x 7 metrics, 16 readers at once, one real server.

    python benchmarks/board.py [--systems 2000] [--readers 16] [--seconds 2] [--workers 1] [--only KIND] [--repeats 1]
                               [--change | --kept]

Fills a SQLite board through the store, starts `earmark serve` on it, and lets readers (threads of two other processes,
one connection each, gzip, no cache of their own, the next question as soon as an answer is there) ask for one kind of
page after the other. No address is asked for twice: every answer has to be made. Each kind has hundreds of addresses,
drawn in random order (`--kept` asks for them again and again instead, so that most answers were made before).

With `--change` a system is sent to the board and accepted, by another process, at the moment at which the readers of
each kind begin: their answers come from before the server has noticed, while it makes the new ranks, and from the
new board, of which nothing was asked for yet. Prints the median, the 95th percentile and the largest in milliseconds,
and the server's processor time for each answer.
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
from typing import NamedTuple
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
    everybody, orders = range(systems), ("", "&order=reversed")
    sorts = ("rank", "name", "family", "parameters", "rtf", "lift", *(f"subset:{subset}" for subset in SUBSETS))
    shown = ("", "&show=subsets", "&show=subsets&show=intervals")
    views = [f"metric={metric}&sort={sort}{order}" for metric in METRICS for sort in sorts for order in orders]
    return {
        "/": ["/"],
        "/b/B": [f"/b/vocsim?{view}&page={page}" for view in views for page in (1, 2, 7)],
        "/b/B filtered": [
            f"/b/vocsim?q={n:02d}&size={size}&training={free}&show=subsets&show=intervals&metric={metric}"
            for n in range(20) for size in ("small", "medium") for free in ("yes", "no") for metric in METRICS
        ],
        "/b/B all lines": [f"/b/vocsim?per=all&{view}" for view in views],
        "/b/B/s/S": [f"/b/vocsim/s/{name(n)}" for n in everybody],
        "/b/B/compare": [
            f"/b/vocsim/compare?s={name(n)}&s={name((n + 7) % systems)}&s={name((n + 99) % systems)}"
            for n in everybody
        ],
        "/b/B/pareto": [
            f"/b/vocsim/pareto?x={x}&metric={metric}&over={over}&scale={scale}"
            for x in ("parameters", "rtf") for metric in METRICS for scale in ("log", "linear")
            for over in ("", "public", *(f"subset:{subset}" for subset in SUBSETS))
        ],
        "/b/B/subsets": ["/b/vocsim/subsets"],
        "/b/B/subsets/T": [f"/b/vocsim/subsets/{subset}?metric={metric}" for subset in SUBSETS for metric in METRICS],
        "/b/B/analysis": ["/b/vocsim/analysis"],
        "/b/B.csv whole": [f"/b/vocsim.csv?{view}{more}" for view in views for more in shown[:1]],
        "/v1 boards": ["/v1/boards"],
        "/v1 systems": [f"/v1/boards/vocsim/systems?limit=100&q={n}" for n in range(300)],
        "/v1 scores": [
            f"/v1/boards/vocsim/scores?limit=500&metric={metric}&subset={subset}"
            for metric in METRICS for subset in SUBSETS
        ],
        "/v1 compare": [f"/v1/boards/vocsim/compare?s={name(n)}&s={name((n + 7) % systems)}" for n in everybody],
    }  # fmt: skip


class Answers(NamedTuple):
    """What readers got: milliseconds of every answer, what was no 200, and the server's processor time in all."""

    times: list[float]
    wrong: list[str]
    processor: float


def change(url: str, number: int) -> None:
    """A new system on the board, sent and accepted by another process than the server's."""
    store = Store(open_database(url))
    user = store.create_user(f"eve-{number}", role="moderator")
    rng = np.random.default_rng(number)
    rows = tuple(
        Row(
            suite="vocsim", subset=subset, system=f"new-{number}", distance="cosine", metric=metric, value=float(value),
            low=float(value) - 0.01, high=float(value) + 0.01, version="0.1.0", inputs=f"{number:016x}",
        )
        for metric, line in zip(METRICS, rng.uniform(0.2, 0.9, (len(METRICS), len(SUBSETS))).round(4), strict=True)
        for subset, value in zip(SUBSETS, line, strict=True)
    )  # fmt: skip
    document = Document.of(Scores(rows), board="vocsim", cards=[SystemCard(f"new-{number}")], provenance="printed")
    store.decide(store.submit(document, user).id, user, accept=True)
    store.close()


def read(address: str, paths: list[str], threads: int, seconds: float, kept: bool, seed: int, results: object) -> None:
    """One process of readers, who ask for each of the paths once; `kept`: for any, as often as there is time for."""
    host = urlsplit(address).netloc
    times: list[float] = []
    wrong: list[str] = []
    left = iter(paths)
    ends = time.monotonic() + seconds

    def reader(number: int) -> None:
        rng = np.random.default_rng([seed, number])
        connection = http.client.HTTPConnection(host, timeout=60)
        while True:  # at least once, however busy the machine is
            path = paths[rng.integers(len(paths))] if kept else next(left, None)
            if path is None:
                break
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


def measure(
    address: str, paths: list[str], readers: int, seconds: float, *, kept: bool = False, server: int = 0
) -> Answers:
    queue = multiprocessing.Queue()
    paths = [paths[place] for place in np.random.default_rng(len(paths)).permutation(len(paths))]
    each = [
        multiprocessing.Process(
            target=read,
            args=(address, paths if kept else paths[part::2], readers // 2, seconds, kept, part, queue),
        )
        for part in (0, 1)
    ]
    before = _processor_time(server)
    for process in each:
        process.start()
    results = [queue.get() for _ in each]
    for process in each:
        process.join()
    times, wrong = ([one for result in results for one in result[part]] for part in (0, 1))
    return Answers(times, wrong, _processor_time(server) - before)


def _processor_time(server: int) -> float:
    """Seconds that the server's processes have worked, without that which makes the analysis."""
    if not server:
        return 0.0
    family = [psutil.Process(server), *psutil.Process(server).children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in family if "analyses" not in " ".join(process.cmdline()))


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
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--change", action="store_true", help="the board changes as the readers of each kind begin")
    options.add_argument("--kept", action="store_true", help="ask again and again: most answers were made before")
    options.add_argument("--only", default="", help="kinds whose name has this in it")
    options.add_argument("--repeats", type=int, default=1, help="starts of the server")
    options.add_argument("--data", type=Path, help="a folder to keep the filled board in")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.data or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        url = f"sqlite:///{folder / 'earmark-board.sqlite3'}"
        fill(url, given.systems)
        rows = given.systems * len(SUBSETS) * len(METRICS)
        print(f"{given.systems} systems, {rows:,} scores; filled in {time.monotonic() - started:.0f} s")
        for _ in range(given.repeats):
            serve_and_measure(given, folder, url)


def serve_and_measure(given: argparse.Namespace, folder: Path, url: str) -> None:
    """One start of a server, and every kind of page."""
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
        first = time.monotonic() - started
        load = os.getloadavg()[0]
        print(f"\nfirst page after {first:.1f} s; {given.readers} readers, {given.workers} worker(s), load {load:.1f}")
        print(f"{'page':16} {'answers':>8} {'a second':>9} {'p50 ms':>8} {'p95 ms':>8} {'most':>8} {'CPU ms':>8}")
        slow = []
        for kind, paths in addresses(given.systems).items():
            if given.only not in kind:
                continue
            if given.change:
                change(url, time.time_ns() % 10**9)
            began = time.monotonic()
            got = measure(address, paths, given.readers, given.seconds, kept=given.kept, server=server.pid)
            took = time.monotonic() - began
            middle, high = np.percentile(got.times, [50, 95])
            note = f"{len(got.wrong)} failed: {got.wrong[0]}" if got.wrong else "" if high < LIMIT else "slow"
            slow += [kind] if note else []
            print(
                f"{kind:16} {len(got.times):8} {len(got.times) / took:9.0f} {middle:8.1f} {high:8.1f} "
                f"{max(got.times):8.1f} {1000 * got.processor / len(got.times):8.1f}  {note}",
                flush=True,
            )
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        memory = [f"{process.memory_info().rss / 2**20:.0f}" for process in family]
        print(f"memory (MiB): {memory[0]} in the server, {' + '.join(memory[1:]) or 'none'} in its children")
        print("every p95 under 200 ms" if not slow else f"over 200 ms or failed: {', '.join(slow)}", flush=True)
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
