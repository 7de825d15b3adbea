import torch

from secondlook.model.states import DocumentStates


def states(tokens):
    return torch.zeros(tokens, 8)  # 32 bytes a token


def test_what_was_put_is_found():
    kept = DocumentStates(max_bytes=1000)
    mine = states(3)
    kept.put(b"a", mine)
    assert kept.get(b"a") is mine
    assert kept.get(b"b") is None
    assert (kept.found, kept.missed) == (1, 1)


def test_the_one_used_longest_ago_goes_first():
    kept = DocumentStates(max_bytes=100)
    for key in (b"a", b"b", b"c"):
        kept.put(key, states(1))
    kept.get(b"a")
    kept.put(b"d", states(1))
    assert kept.get(b"b") is None
    assert all(kept.get(key) is not None for key in (b"a", b"c", b"d"))


def test_it_never_grows_beyond_its_bound():
    kept = DocumentStates(max_bytes=100)
    for number in range(50):
        kept.put(str(number).encode(), states(1 + number % 5))
        assert kept.bytes <= 100
    assert len(kept) > 0


def test_a_document_larger_than_the_bound_is_not_kept_and_drives_none_out():
    kept = DocumentStates(max_bytes=100)
    kept.put(b"small", states(1))
    kept.put(b"huge", states(10))
    assert kept.get(b"huge") is None
    assert kept.get(b"small") is not None
