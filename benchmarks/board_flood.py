"""An honest submission while strangers ask for costly checks: how long it takes, alone and in the flood.

    python benchmarks/board_flood.py                  120 costly checks a minute for 30 s, then 10 at once
    python benchmarks/board_flood.py --seconds 10
    python benchmarks/board_flood.py --addresses 120  from so many addresses, as a proxy that is trusted tells them

It starts `earmark serve` on a free port of this machine, and asks nobody else. A costly check is a Parquet file of some
kilobytes: 5,000 different rows, as many as are read without a token; 100,000 equal ones, refused from a look at their
columns; 100,000 different ones, refused by the footer.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

_PER_MINUTE = 120
_AT_ONCE = 10
_EVERY = 1.0
_TOKEN = re.compile(r"^    (em_\S+)$", re.MULTILINE)


class Flood(NamedTuple):
    """What was measured: seconds of honest submissions, and what the flood was answered with."""

    alone: list[float]
    flooded: list[float]
    at_once: list[float]
    answers: Counter[int]

    def lines(self) -> list[str]:
        parts = (
            ("alone", self.alone), (f"with {_PER_MINUTE} costly checks a minute", self.flooded),
            (f"with {_AT_ONCE} costly checks at once", self.at_once),
        )  # fmt: skip
        lines = [f"{words}: median {statistics.median(took):.3f} s, longest {max(took):.3f} s" for words, took in parts]
        return [*lines, f"the flood was answered with {dict(sorted(self.answers.items()))}"]


def costly_checks() -> list[bytes]:
    """Parquet files of a few kilobytes that say much."""
    import pyarrow
    from pyarrow import parquet

    def packed(rows: int, different: bool) -> bytes:
        subsets = [f"s{row % 400}" if different else "s" for row in range(rows)]
        systems = [f"m{row // 400}" if different else "m" for row in range(rows)]
        table = {"suite": ["mine"] * rows, "system": systems, "subset": subsets, "metric": ["P@1"] * rows}
        stream = io.BytesIO()
        parquet.write_table(pyarrow.table({**table, "value": [0.5] * rows}), stream, compression="snappy")
        return stream.getvalue()

    return [packed(5_000, True), packed(100_000, False), packed(100_000, True)]


def honest(number: int) -> bytes:
    """A submission as authors send it."""
    of_all = {"system": f"model {number}", "distance": "cosine", "value": 0.5}
    rows = [
        {**of_all, "subset": f"subset {subset}", "metric": metric}
        for subset in range(19)
        for metric in ("P@1", "P@5", "GSR")
    ]
    whole = {"format": "earmark-submission", "version": 1, "board": "mine", "systems": [{"name": f"model {number}"}]}
    return json.dumps({**whole, "scores": rows}).encode()


def asked(address: str, data: bytes, kind: str, token: str = "", asker: str = "") -> tuple[int, float]:
    """The status of an answer, and how long it took; `asker` is the address that a proxy on this machine would tell."""
    headers = {"Content-Type": kind, **({"Authorization": f"Bearer {token}"} if token else {})}
    headers |= {"X-Forwarded-For": asker} if asker else {}
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers), timeout=60) as answer:
            answer.read()
            status = answer.status
    except urllib.error.HTTPError as error:
        error.read()
        status = error.code
    return status, time.perf_counter() - began


def measure(address: str, token: str, seconds: float, addresses: int = 1) -> Flood:
    """Submit once a second: alone, in the flood, and while ten costly checks are asked for at once, from so many
    addresses in turn."""
    bombs, answers = costly_checks(), Counter[int]()
    numbers = iter(range(1_000_000))

    def check(number: int) -> None:
        kind = "application/vnd.apache.parquet"
        asker = f"198.51.100.{number % addresses}" if addresses > 1 else ""
        answers[asked(f"{address}/v1/submissions/validate", bombs[number % len(bombs)], kind, asker=asker)[0]] += 1

    def submit() -> float:
        status, took = asked(f"{address}/v1/submissions", honest(next(numbers)), "application/json", token)
        assert status == 201, status
        return took

    def submissions(lasting: float) -> list[float]:
        took, ends = [], time.monotonic() + lasting
        while not took or time.monotonic() < ends:
            took.append(submit())
            time.sleep(max(0.0, _EVERY - took[-1]))
        return took

    submit()
    alone = submissions(min(5.0, seconds))
    stop = threading.Event()
    with ThreadPoolExecutor(2 * _AT_ONCE) as pool:

        def flood() -> None:
            for number in range(int(_PER_MINUTE * seconds / 60)):
                pool.submit(check, number)
                if stop.wait(60 / _PER_MINUTE):
                    return

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            flooded = submissions(seconds)
        finally:
            stop.set()
            thread.join()
        at_once = []
        for _ in range(3):
            waiting = [pool.submit(check, number) for number in range(_AT_ONCE)]
            at_once.append(submit())
            for each in waiting:
                each.result()
    return Flood(alone, flooded, at_once, answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the flood lasts (default: 30)")
    parser.add_argument("--addresses", type=int, default=1, help="from how many addresses it comes, at most 250")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="earmark-flood-") as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "earmark", "serve", "--empty", "--port", "0", "--data", folder]
        with log.open("w") as stream:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            found = _TOKEN.search(log.read_text("utf-8"))
            assert found is not None, log.read_text("utf-8")
            print("\n".join(measure(address, found[1], args.seconds, min(250, args.addresses)).lines()))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


if __name__ == "__main__":
    main()
