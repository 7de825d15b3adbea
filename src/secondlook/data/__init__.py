"""The field's formats in and out, and the corpus store."""

from secondlook.data.fingerprint import Fingerprint
from secondlook.data.formats import (
    read_candidates,
    read_corpus,
    read_qrels,
    read_queries,
    read_run,
    read_triples,
    run_tag,
    write_corpus,
    write_qrels,
    write_queries,
    write_run,
)
from secondlook.data.msmarco import IdTriple, TextTriple
from secondlook.data.store import CorpusStore

__all__ = [
    "CorpusStore",
    "Fingerprint",
    "IdTriple",
    "TextTriple",
    "read_candidates",
    "read_corpus",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_triples",
    "run_tag",
    "write_corpus",
    "write_qrels",
    "write_queries",
    "write_run",
]
