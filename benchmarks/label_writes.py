"""Labels written by several people at once, for a minute: none may be lost, and each waits only for the disk.

python -m benchmarks.label_writes                             # 5 people, 50 labels per second in all, a minute
python -m benchmarks.label_writes --rate 0 --seconds 10       # as fast as the disk allows
python -m benchmarks.label_writes --folder /mnt/slow          # on another disk
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep

import numpy as np

from karat.gold.labels import Label, LabelFile, read_labels


def measure(folder: Path, people: int, rate: float, seconds: float) -> None:
    """Write, read again, and print the number of labels and how long they waited."""
    path, waits = folder / "gold.labels.jsonl", list[float]()
    until = monotonic() + seconds

    def work(name: str, place: int) -> None:
        count, next_ = 0, monotonic()
        while monotonic() < until:
            began = monotonic()
            file.append(Label(f"q{count}", f"{place}", grade=count % 4, by=name))
            waits.append(monotonic() - began)
            count += 1
            next_ += people / rate if rate else 0.0
            sleep(max(0.0, next_ - monotonic()))

    with LabelFile(path) as file:
        threads = [Thread(target=work, args=(f"person {n}", n)) for n in range(people)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    stored = len(read_labels(path).standing().latest)
    half, most, worst = np.percentile(waits, [50, 99, 100]) * 1000
    print(f"{people} people, {seconds:.0f} s: {len(waits):,} labels, {len(waits) / seconds:,.0f} per second")
    print(f"waited for the disk: median {half:.2f} ms, 99 % {most:.2f} ms, longest {worst:.1f} ms")
    print(f"acknowledged {len(waits):,}, stored {stored:,}, lost {len(waits) - stored:,}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and measure."""
    parser = ArgumentParser(prog="python -m benchmarks.label_writes", description="Write labels from several people.")
    parser.add_argument("--people", type=int, default=5, help="the people who label at once")
    parser.add_argument("--rate", type=float, default=50.0, help="labels per second of all people; 0: no limit")
    parser.add_argument("--seconds", type=float, default=60.0, help="the length of the measurement")
    parser.add_argument("--folder", help="the folder of the file (default: a temporary one)")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options.people, options.rate, options.seconds)


if __name__ == "__main__":
    main()
