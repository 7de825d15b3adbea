"""The field's formats in and out."""

from secondlook.data.formats import (
    read_candidates,
    read_corpus,
    read_qrels,
    read_queries,
    read_run,
    read_triples,
    write_corpus,
    write_qrels,
    write_queries,
    write_run,
)
from secondlook.data.msmarco import IdTriple, TextTriple

__all__ = [
    "IdTriple",
    "TextTriple",
    "read_candidates",
    "read_corpus",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_triples",
    "write_corpus",
    "write_qrels",
    "write_queries",
    "write_run",
]
