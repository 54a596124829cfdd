"""Label writes: several clients answer at once over HTTP, for a minute, and every acknowledged answer must be on disk.

python -m benchmarks.label_server                # 5 clients, 50 answers per second together, 60 seconds
python -m benchmarks.label_server --seconds 5
"""

from __future__ import annotations

import argparse
import json
import sys
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter, sleep
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


class Writes(NamedTuple):
    """What was sent, acknowledged and found in the file, and how long an acknowledgement took."""

    sent: int
    acknowledged: int
    stored: int
    doubled: int
    median: float
    """Milliseconds."""
    slowest: float
    """Milliseconds."""


def write_labels(folder: Path, *, clients: int, per_second: float, seconds: float) -> Writes:
    """Let clients answer for some time, and count the lines of the labels file."""
    from support.labelled import labelled, write_pool

    pool = write_pool(folder / "pool.parquet", 20, 10)  # type: ignore[no-untyped-call]
    pairs = [(query.id, item.key) for query in pool.queries for item in query.items]
    took: list[float] = []
    sent: list[str] = []
    acknowledged: list[int] = []
    with labelled(folder / "pool.parquet", folder / "gold.jsonl") as server:

        def client(number: int) -> None:
            connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
            headers = {"Content-Type": "application/json", "Origin": server.url, "Cookie": server.cookie}
            begin, rounds = perf_counter(), int(seconds * per_second / clients)
            for round_ in range(rounds):
                sleep(max(0.0, begin + round_ * clients / per_second - perf_counter()))
                query, item = pairs[(number * 31 + round_) % len(pairs)]
                name = f"{number}-{round_}"
                body: dict[str, Any] = {"id": name, "by": f"client {number}", "query": query, "item": item}
                body |= {"answer": "grade", "grade": round_ % 4, "note": name}
                start = perf_counter()
                connection.request("POST", "/label/answer", json.dumps(body), headers)
                answer = connection.getresponse()
                content = json.loads(answer.read())
                took.append(1000 * (perf_counter() - start))
                sent.append(name)
                if answer.status == 200:
                    acknowledged.append(content["label"]["number"])
            connection.close()

        _ = server.cookie
        threads = [Thread(target=client, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.process.kill()
        server.process.wait()
        lines = server.labels
    names = [line["note"] for line in lines]
    numbers = {line["number"] for line in lines}
    stored = sum(number in numbers for number in acknowledged)
    took.sort()
    return Writes(len(sent), len(acknowledged), stored, len(names) - len(set(names)), took[len(took) // 2], took[-1])


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5)
    parser.add_argument("--per-second", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = write_labels(Path(folder), **vars(options))
    print(
        f"{found.sent:,} answers of {options.clients} clients in {options.seconds:g} s: {found.acknowledged:,} "
        f"acknowledged, {found.stored:,} of them on disk after kill -9, {found.doubled} doubled; "
        f"median {found.median:.1f} ms, slowest {found.slowest:.0f} ms"
    )
    if not found.sent == found.acknowledged == found.stored or found.doubled:
        raise SystemExit("answers were lost or doubled")


if __name__ == "__main__":
    main()
