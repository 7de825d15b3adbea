"""The cluster engine on a real OpenSearch with TLS, users and roles."""

from __future__ import annotations

import json

import pytest

from command_line import secondlook
from opensearch_security import ADMIN, READER, WRITER, Authority
from secondlook.errors import EngineProblem
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.types import Document, Query

pytestmark = pytest.mark.real

TEXTS = ["A cat lands on its feet.", "A dog wags its tail.", "Owls turn their heads."]
DOCUMENTS = [Document(f"d{number}", text) for number, text in enumerate(TEXTS)]
SECRETS = [user.password for user in (ADMIN, WRITER, READER)]


@pytest.fixture
def sign_in(security, monkeypatch, tmp_path):
    """Who asks from now on, in an environment that is otherwise right."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(security.authority.certificate))

    def as_user(user, **changes):
        for name, value in {**user.environment, **changes}.items():
            monkeypatch.setenv(name, value)

    return as_user


def settings(cluster, name="animals"):
    return OpenSearchSettings(urls=cluster.urls, name=name)


@pytest.fixture
def folder(secured, sign_in, tmp_path):
    """An index that the writer made."""
    sign_in(WRITER)
    OpenSearchIndex.build(tmp_path / "index", DOCUMENTS, settings(secured))
    return tmp_path / "index"


def hits(index, text="cats"):
    (ranking,) = index.retrieve([Query("q", text)], 3)
    return [hit.doc_id for hit in ranking.hits]


def test_a_user_with_rights_makes_changes_and_searches_an_index(folder, tmp_path):
    index = OpenSearchIndex.open(folder)  # the host is known: the index was made there
    assert hits(index) == ["d0"]
    index.upsert([Document("d9", "A cat sleeps.")])
    assert sorted(hits(index)) == ["d0", "d9"]
    index.verify()
    written = "".join(
        path.read_text() for path in (folder / "index.json", *(tmp_path / "config").rglob("*.txt"))
    )
    assert "127.0.0.1" in written
    assert not any(secret in written for secret in SECRETS)


def test_a_user_who_may_only_read_searches_and_is_told_what_is_forbidden(folder, secured, sign_in):
    sign_in(READER)
    index = OpenSearchIndex.open(folder)
    assert hits(index) == ["d0"]
    assert index.fetch(["d1"]) == [DOCUMENTS[1]]
    with pytest.raises(EngineProblem, match=r"forbids this.*the right to create, write"):
        index.upsert([Document("d9", "A cat sleeps.")])
    with pytest.raises(EngineProblem, match="forbids this"):
        OpenSearchIndex.build(folder, DOCUMENTS, settings(secured, "more"))
    assert hits(index) == ["d0"]


def test_a_wrong_password_is_told_without_repeating_it(folder, sign_in):
    sign_in(READER, OPENSEARCH_PASSWORD="gu3ssed")
    with pytest.raises(
        EngineProblem, match=r"refused the credentials.*OPENSEARCH_PASSWORD"
    ) as said:
        OpenSearchIndex.open(folder)
    assert "gu3ssed" not in str(said.value)


def test_without_credentials_the_message_says_where_to_put_them(folder, monkeypatch):
    monkeypatch.delenv("OPENSEARCH_USERNAME")
    monkeypatch.delenv("OPENSEARCH_PASSWORD")
    with pytest.raises(EngineProblem, match="set OPENSEARCH_USERNAME"):
        OpenSearchIndex.open(folder)


def test_a_certificate_of_an_unknown_authority_is_refused(folder, monkeypatch, tmp_path):
    other = Authority(tmp_path / "other")
    for trusted in (None, other.certificate):
        if trusted:
            monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(trusted))
        else:
            monkeypatch.delenv("OPENSEARCH_CA_CERTS")
        with pytest.raises(EngineProblem, match=r"cannot be trusted.*OPENSEARCH_CA_CERTS"):
            OpenSearchIndex.open(folder)


def test_a_name_that_the_certificate_does_not_bear_is_refused(folder, secured, monkeypatch):
    monkeypatch.setenv("OPENSEARCH_URL", secured.urls[0].replace("127.0.0.1", "localhost"))
    with pytest.raises(EngineProblem, match=r"cannot be trusted.*the host as the certificate does"):
        OpenSearchIndex.open(folder)


def test_plain_http_to_a_secured_cluster_says_so(secured, sign_in, tmp_path):
    sign_in(WRITER)
    url = secured.urls[0].replace("https", "http")
    with pytest.raises(EngineProblem, match=f"cannot reach the cluster at {url}.*is the url right"):
        OpenSearchIndex.build(
            tmp_path / "x", DOCUMENTS, OpenSearchSettings(urls=(url,), name="animals")
        )


def test_verbs_work_from_the_environment_and_show_no_secret(
    folder, secured, sign_in, monkeypatch, tmp_path
):
    sign_in(READER)
    assert json.loads(secondlook("search", folder, "cats", "--json"))[0]["id"] == "d0"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    complaint = secondlook("search", folder, "cats", fails=True)
    assert f"set OPENSEARCH_URL={secured.urls[0]}" in complaint
    assert READER.password not in complaint
    monkeypatch.setenv("OPENSEARCH_URL", secured.urls[0])
    assert json.loads(secondlook("search", folder, "cats", "--json"))[0]["id"] == "d0"
