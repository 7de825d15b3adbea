"""Addresses of remote rankers: what is read from them, and what is refused."""

import pytest

from secondlook.errors import UnknownName, WrongArgument
from secondlook.remote.address import RemoteAddress, is_remote


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("https://api.cohere.com/v2/rerank", "cohere"),
        ("https://api.jina.ai/v1/rerank", "jina"),
        ("http://localhost:8080/rerank", "tei"),
        ("http://127.0.0.1:8000/score", "vllm"),
        ("http://[::1]:8000/v1/score", "vllm"),
        ("jina+http://localhost:7997/rerank", "jina"),
        ("tei+https://rank.example/a/b?version=2", "tei"),
    ],
)
def test_the_path_or_a_prefix_tells_the_api(text, shape):
    assert is_remote(text)
    assert RemoteAddress.parse(text).shape == shape


def test_options_stand_behind_the_fragment_and_are_never_sent():
    text = (
        "https://rank.example/v2/rerank?v=1#model=org/name-v3.5,batch=7,price_per_1000_searches=2"
    )
    address = RemoteAddress.parse(text)
    assert address.url == "https://rank.example/v2/rerank?v=1"
    assert (address.options.model, address.batch) == ("org/name-v3.5", 7)
    assert address.options.price_per_1000_searches == 2
    assert address.name == "rank.example org/name-v3.5"
    assert address.place == "https://rank.example/v2/rerank"


def test_what_no_score_depends_on_does_not_change_the_identity():
    first = RemoteAddress.parse("https://rank.example/v2/rerank#model=m")
    same = RemoteAddress.parse("https://rank.example/v2/rerank#model=m,batch=3,timeout=5,key=K")
    other = RemoteAddress.parse("https://rank.example/v2/rerank#model=n")
    assert first.identity() == same.identity() != other.identity()


@pytest.mark.parametrize("name", ["my.ranker", "org/model", "ftp://a/rerank", "c:/https/x", ""])
def test_folders_and_hub_ids_are_no_addresses(name):
    assert not is_remote(name)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://rank.example/other/rerank", "name the API before the address"),
        ("https://rank.example", "name the API before the address"),
        ("http://rank.example/rerank", "plain http"),
        ("https://me:secret@rank.example/rerank", "must not hold a password"),
        ("https://[::1/v2/rerank", "host or the port"),
        ("https://rank.example:abc/v2/rerank", "host or the port"),
        ("https://rank.example:99999/v2/rerank", "host or the port"),
        ("https://me:secret/rerank", "host or the port"),
        ("https:///v2/rerank", "host or the port"),
        ("https://rank.example/rerank#model", "is not name=value"),
        ("https://rank.example/rerank#batch=0", "batch="),
        ("https://rank.example/rerank#key=sk-12345", "names the environment variable"),
        ("https://rank.example/rerank#max_cost=1", "needs a price"),
        (
            "https://rank.example/rerank#price_per_1000_searches=1,price_per_1000_documents=1",
            "not both",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_no_secret_repeated(text, told):
    with pytest.raises(WrongArgument, match=told) as refused:
        RemoteAddress.parse(text)
    assert "secret" not in str(refused.value)
    assert "sk-12345" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cohre+https://rank.example/rerank", "'cohere'"),
        ("https://rank.example/rerank#modle=m", "'model'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(text, told):
    with pytest.raises(UnknownName, match=f"did you mean {told}"):
        RemoteAddress.parse(text)


def test_a_key_goes_only_where_the_user_says():
    environ = {"CO_API_KEY": "cohere's", "MINE": "mine"}
    cohere = RemoteAddress.parse("https://api.cohere.com/v2/rerank")
    assert cohere.key(environ) == "cohere's"
    assert cohere.key({"COHERE_API_KEY": "other"}) == "other"
    assert RemoteAddress.parse("https://api.cohere.com/v1/rerank").key(environ) == "cohere's"
    assert RemoteAddress.parse("https://api.jina.ai/v1/rerank").key(environ) is None
    elsewhere = RemoteAddress.parse("https://rank.example/v2/rerank")
    assert elsewhere.key(environ) is None
    named = RemoteAddress.parse("https://rank.example/v2/rerank#key=MINE")
    assert named.key(environ) == "mine"
    with pytest.raises(WrongArgument, match=r"MINE.*is not set"):
        named.key({})


def test_a_key_is_sent_without_the_space_around_it_or_refused_unseen():
    named = RemoteAddress.parse("https://rank.example/v2/rerank#key=MINE")
    assert named.key({"MINE": " s3cret\r\n"}) == "s3cret"
    for value in ("s3cret…", "s3\ncret", "s3\x00cret"):
        with pytest.raises(WrongArgument, match="MINE holds no API key") as refused:
            named.key({"MINE": value})
        assert "cret" not in str(refused.value)
    with pytest.raises(WrongArgument, match="is not set"):
        named.key({"MINE": "\n"})
    cohere = RemoteAddress.parse("https://api.cohere.com/v2/rerank")
    assert cohere.key({"CO_API_KEY": "\n", "COHERE_API_KEY": "other\n"}) == "other"
