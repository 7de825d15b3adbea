from dataclasses import replace
from hashlib import sha256

import pytest

from secondlook.data.fingerprint import Fingerprint
from secondlook.errors import MalformedInput
from secondlook.types import Document


def fingerprint(*documents):
    whole = Fingerprint()
    for document in documents:
        whole.add(document)
    return whole.digest()


def test_it_is_the_sha256_of_length_prefixed_fields():
    fields = ["d1", "Tïtle", "text"]
    data = b"".join(len(f.encode()).to_bytes(8, "little") + f.encode() for f in fields)
    assert fingerprint(Document("d1", "text", "Tïtle")) == f"sha256:{sha256(data).hexdigest()}"


@pytest.mark.parametrize(
    "other",
    [
        [Document("b", "two"), Document("a", "one")],
        [Document("a", "one")],
        [Document("a", "", "one"), Document("b", "two")],
        [Document("ao", "ne"), Document("b", "two")],
        [Document("a", "one\0"), Document("b", "two")],
    ],
    ids=["order", "fewer", "title for text", "letter moved to the id", "a NUL"],
)
def test_any_difference_shows(other):
    assert fingerprint(*other) != fingerprint(Document("a", "one"), Document("b", "two"))


def test_half_a_surrogate_pair_is_refused_with_the_document_named():
    with pytest.raises(MalformedInput, match=r"document 'd7' holds '\\ud83d'"):
        fingerprint(Document("d7", "smile \ud83d"))


def test_weights_and_queries_make_another_corpus():
    plain = Document("d", "sea")
    others = [
        replace(plain, weights={"sea": 1}),
        replace(plain, weights={"sea": 2}),
        replace(plain, weights={}),
        replace(plain, queries=("sea",)),
    ]
    assert len({fingerprint(plain), *map(fingerprint, others)}) == 5
