r"""A part of a set that is too large for a short measure.

    python benchmarks/part.py DATA/insuranceqa -o PART \
      --first dev=500 --first test=1000 --documents 5000

Of each split named the first queries stay, by the order of its judgments; a split that is not named
stays whole. With --documents the corpus shrinks too: what is judged for a query of a named split
stays, and as many others as there is room for, drawn at random (seed 0).
"""

from __future__ import annotations

import argparse
import random
from itertools import islice
from pathlib import Path
from shutil import copyfile

from secondlook.data import read_corpus, read_qrels, write_corpus, write_qrels


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", type=Path)
    arguments.add_argument("-o", "--output", type=Path, required=True)
    arguments.add_argument("--first", action="append", default=[], metavar="SPLIT=QUERIES")
    arguments.add_argument("--documents", type=int)
    given = arguments.parse_args()
    limits = {name: int(count) for name, count in (one.split("=") for one in given.first)}
    (given.output / "qrels").mkdir(parents=True)
    judged: set[str] = set()
    for path in sorted((given.data / "qrels").glob("*.tsv")):
        qrels = read_qrels(path)
        if path.stem in limits:
            qrels = dict(islice(qrels.items(), limits[path.stem]))
            judged |= {doc for own in qrels.values() for doc in own}
        write_qrels(given.output / "qrels" / path.name, qrels)
        print(f"{path.stem}: {len(qrels):,} queries")
    [queries], [corpus] = given.data.glob("queries.*"), given.data.glob("corpus.*")
    copyfile(queries, given.output / queries.name)
    if given.documents is None:
        copyfile(corpus, given.output / corpus.name)
        return
    others = sorted({document.id for document in read_corpus(corpus)} - judged)
    drawn = random.Random(0).sample(others, given.documents - len(judged))
    kept = judged | set(drawn)
    write_corpus(given.output / corpus.name, (one for one in read_corpus(corpus) if one.id in kept))
    print(f"{given.documents:,} documents, {len(judged):,} of them judged")


if __name__ == "__main__":
    main()
