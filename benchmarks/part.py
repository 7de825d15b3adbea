r"""A part of a set that is too large for a short measure.

    python benchmarks/part.py DATA/insuranceqa -o PART \
      --first dev=500 --first test=1000 --documents 5000

Of each split named the first queries stay, by the order of its judgments; a split that is not named
stays whole. With --documents the corpus shrinks too: what is judged for a query of a named split
stays, and as many others as there is room for, drawn at random (seed 0). The folder appears when it
is complete.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from shutil import copyfile, rmtree

from secondlook.data import read_corpus, read_qrels, write_corpus, write_qrels


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", type=Path)
    arguments.add_argument("-o", "--output", type=Path, required=True)
    arguments.add_argument("--first", action="append", default=[], metavar="SPLIT=QUERIES")
    arguments.add_argument("--documents", type=int)
    given = arguments.parse_args()
    limits = {name: int(count) for name, count in (one.split("=") for one in given.first)}
    write_part(given.data, given.output, limits, given.documents)


def write_part(
    data: Path, output: Path, limits: Mapping[str, int], documents: int | None = None
) -> None:
    """Write the folder, with the first queries of each split in `limits`."""
    half = output.with_name(f"{output.name}.half")
    if half.exists():
        rmtree(half)  # a killed process left it
    (half / "qrels").mkdir(parents=True)
    judged: set[str] = set()
    for path in sorted((data / "qrels").glob("*.tsv")):
        qrels = read_qrels(path)
        if path.stem in limits:
            qrels = dict(islice(qrels.items(), limits[path.stem]))
            judged |= {doc for own in qrels.values() for doc in own}
        write_qrels(half / "qrels" / path.name, qrels)
        sys.stderr.write(f"{path.stem}: {len(qrels):,} queries\n")
    [queries], [corpus] = data.glob("queries.*"), data.glob("corpus.*")
    copyfile(queries, half / queries.name)
    if documents is None:
        copyfile(corpus, half / corpus.name)
    else:
        others = sorted({document.id for document in read_corpus(corpus)} - judged)
        kept = judged | set(random.Random(0).sample(others, documents - len(judged)))
        write_corpus(half / corpus.name, (one for one in read_corpus(corpus) if one.id in kept))
        sys.stderr.write(f"{documents:,} documents, {len(judged):,} of them judged\n")
    half.rename(output)


if __name__ == "__main__":
    main()
