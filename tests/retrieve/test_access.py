"""Who gets the user's credentials, and which nodes of a cluster are asked."""

from __future__ import annotations

import hashlib
import os
import shutil
import ssl
import stat
import time

import pytest

from fake_cluster import NAME, folder_of, listening
from opensearch_security import Authority
from secondlook.errors import EngineProblem, IndexProblem
from secondlook.retrieve.access import Access, Route, origin
from secondlook.retrieve.cluster import Cluster
from secondlook.retrieve.folder import read_card
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.workflows.vectors import add_vectors

PASSWORD = {"OPENSEARCH_USERNAME": "eve", "OPENSEARCH_PASSWORD": "s3cret"}
BASIC = "Basic ZXZlOnMzY3JldA=="


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No cluster is known, and nothing is set, but what a test says."""
    for name in [name for name in os.environ if name.startswith(("OPENSEARCH_", "AWS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "secondlook" / "clusters.txt"


@pytest.fixture
def credentials(monkeypatch):
    for name, value in PASSWORD.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def node():
    with listening() as node:
        yield node


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    return Authority(tmp_path_factory.mktemp("tls") / "authority")


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.issue("node", "IP:127.0.0.1")


def connected(url, environment):
    return Cluster.connect(Route.named_by_user(Access.from_environment(environment), (url,)))


@pytest.mark.parametrize(
    ("environment", "header"),
    [
        (PASSWORD, BASIC),
        ({"OPENSEARCH_API_KEY": "a2V5"}, "ApiKey a2V5"),
        ({"OPENSEARCH_TOKEN": "t0ken"}, "Bearer t0ken"),
    ],
)
def test_credentials_come_from_the_environment(node, environment, header, caplog):
    caplog.set_level("DEBUG")
    access = Access.from_environment(environment)
    connected(node.url, environment).ask("GET", "/")
    assert node.credentials == {header}
    secret = header.split()[1]
    for shown in (caplog.text, repr(access), repr(Route.named_by_user(access, (node.url,)))):
        assert secret not in shown
        assert "s3cret" not in shown


@pytest.mark.parametrize(
    "environment",
    [
        {"OPENSEARCH_USERNAME": "eve"},
        {"OPENSEARCH_PASSWORD": "s3cret"},
        {"OPENSEARCH_API_KEY": "a2V5", "OPENSEARCH_USERNAME": "eve"},
        {"OPENSEARCH_API_KEY": "a2V5", "OPENSEARCH_TOKEN": "t0ken"},
        {"OPENSEARCH_AWS_REGION": "eu-west-1", "OPENSEARCH_USERNAME": "eve"},
        {"OPENSEARCH_CERT_FINGERPRINT": "12:34"},
        {"OPENSEARCH_CREDENTIALS_FILE": "/nowhere/at/all"},
        {"OPENSEARCH_VERIFY_CERTS": "no"},
        {"OPENSEARCH_URL": "search:9200"},
    ],
)
def test_half_and_double_settings_are_refused(environment):
    with pytest.raises(EngineProblem, match=r"OPENSEARCH_|write it like"):
        Access.from_environment(environment)


def test_a_password_in_the_cluster_s_url_is_not_shown_where_it_holds_a_comma():
    with pytest.raises(EngineProblem, match="must not hold a password") as caught:
        Access.from_environment({"OPENSEARCH_URL": "https://eve:s3,cret@host:9200"})
    assert "s3" not in str(caught.value)


def test_a_folder_cannot_call_for_credentials(node, credentials, tmp_path):
    index = OpenSearchIndex.open(folder_of(tmp_path / "sent", node.url))
    assert index.card.documents == 3
    assert node.credentials == {None}


def test_a_folder_that_asks_for_credentials_is_told_apart_from_a_wrong_password(
    node, credentials, tmp_path
):
    node.needs_credentials = True
    with pytest.raises(EngineProblem, match=rf"not sent.*OPENSEARCH_URL={node.url}") as caught:
        OpenSearchIndex.open(folder_of(tmp_path / "sent", node.url))
    assert "s3cret" not in str(caught.value)
    assert node.credentials == {None}


def test_the_cluster_that_the_user_names_gets_them_whatever_the_folder_says(
    node, credentials, tmp_path, monkeypatch
):
    with listening() as other:
        folder = folder_of(tmp_path / "sent", other.url)
        monkeypatch.setenv("OPENSEARCH_URL", node.url)
        OpenSearchIndex.open(folder)
        assert other.asked == []
    assert node.credentials == {BASIC}
    assert read_card(folder).settings["urls"] == [other.url]


def test_a_cluster_that_an_index_was_made_on_is_remembered_and_no_other(
    node, credentials, home, tmp_path
):
    Access.from_environment({**PASSWORD, "XDG_CONFIG_HOME": str(home.parents[1])}).remember(
        [node.url]
    )
    OpenSearchIndex.open(folder_of(tmp_path / "mine", node.url))
    assert node.credentials == {BASIC}
    with listening() as other:
        OpenSearchIndex.open(folder_of(tmp_path / "both", node.url, other.url))
        assert other.asked == []  # it does not get the requests that need credentials either
        OpenSearchIndex.open(folder_of(tmp_path / "sent", other.url, nodes=[other.url]))
        assert other.credentials == {None}
    assert "s3cret" not in home.read_text()
    assert BASIC.split()[1] not in home.read_text()
    if hasattr(stat, "S_IRWXO"):
        assert home.parent.stat().st_mode & stat.S_IRWXO == 0


def test_nodes_that_an_unnamed_cluster_lists_never_get_credentials(
    node, credentials, home, tmp_path
):
    with listening() as second:
        node.publishes = second.publishes = [node.address, second.address]
        folder = folder_of(tmp_path / "sent", node.url)
        OpenSearchIndex.open(folder)
        OpenSearchIndex.open(folder)  # by now the folder names the second node, too
        assert read_card(folder).settings["nodes"] == [second.url]
        assert node.credentials == second.credentials == {None}
    assert not home.exists()


def test_a_name_covers_one_scheme_and_one_port():
    assert origin("https://Search.Example.org/path") == "https://search.example.org:443"
    assert origin("http://search") == "http://search:9200"
    assert origin("https://[::1]:9200") == "https://[::1]:9200"
    access = Access(("https://search:9200",), BASIC)
    assert access.may_receive("https://search:9200/")
    assert not access.may_receive("http://search:9200")
    assert not access.may_receive("https://search:9201")


def test_an_index_is_filled_anew_where_it_was_reached(node, credentials, tmp_path, monkeypatch):
    with listening() as moved:
        folder = folder_of(tmp_path / "index", node.url)
        monkeypatch.setenv("OPENSEARCH_URL", moved.url)
        assert OpenSearchIndex.open(folder).rebuild_settings().urls == (moved.url,)
        monkeypatch.delenv("OPENSEARCH_URL")
        Access.from_environment(os.environ).remember([moved.url])
        both = folder_of(tmp_path / "both", node.url, moved.url)
        assert OpenSearchIndex.open(both).rebuild_settings().urls == (moved.url,)
    assert node.asked == []


def test_vectors_are_not_added_with_credentials_where_only_the_folder_names_the_cluster(
    node, credentials, home, tmp_path
):
    folder = folder_of(tmp_path / "sent", node.url)
    with pytest.raises(EngineProblem, match=rf"set OPENSEARCH_URL={node.url}"):
        add_vectors(folder, tmp_path / "corpus.jsonl", tmp_path / "ranker")
    assert node.credentials == {None}
    assert not home.exists()


@pytest.mark.parametrize("url", ["http://search.example.org:9200", "http://10.0.0.7:9200"])
def test_credentials_do_not_leave_the_machine_in_the_clear(url, credentials, monkeypatch, tmp_path):
    with pytest.raises(EngineProblem, match="not encrypted: give an https url"):
        OpenSearchIndex.build(tmp_path / "x", [], OpenSearchSettings(urls=(url,), name=NAME))
    monkeypatch.setenv("OPENSEARCH_URL", url)
    with pytest.raises(EngineProblem, match="not encrypted"):
        OpenSearchIndex.open(folder_of(tmp_path / "sent", "https://search.example.org"))


@pytest.mark.parametrize("verify_certs", [True, False])
def test_a_folder_has_no_say_in_how_certificates_are_checked(
    certificate, authority, verify_certs, tmp_path, monkeypatch
):
    with listening(certificate) as node:
        folder = folder_of(tmp_path / "sent", node.url, verify_certs=verify_certs)
        with pytest.raises(EngineProblem, match=r"cannot be trusted.*OPENSEARCH_CA_CERTS"):
            OpenSearchIndex.open(folder)
        assert node.asked == []
        monkeypatch.setenv("OPENSEARCH_VERIFY_CERTS", "false")
        assert OpenSearchIndex.open(folder).card.documents == 3
        monkeypatch.setenv("OPENSEARCH_VERIFY_CERTS", "true")
        monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(authority.certificate))
        assert OpenSearchIndex.open(folder).card.documents == 3


def test_only_nodes_that_answer_as_the_same_cluster_are_added(node, tmp_path):
    with listening() as second, listening(cluster="another") as stranger:
        nobody = "127.0.0.1:9"
        node.publishes = [node.address, second.address, stranger.address, nobody, "nonsense"]
        folder = folder_of(tmp_path / "index", node.url)
        index = OpenSearchIndex.open(folder)
        assert index.card.settings["nodes"] == read_card(folder).settings["nodes"] == [second.url]
        second.asked.clear()
        OpenSearchIndex.open(folder)
        assert second.asked == []  # known by now, and needed only when the first is away


def test_a_folder_goes_on_without_the_node_it_names(tmp_path):
    with listening() as second:
        with listening(publishes=[second.address]) as first:
            folder = folder_of(tmp_path / "index", first.url)
            index = OpenSearchIndex.open(folder)
        second.publishes = [second.address]
        assert index._cluster.identity() == "this cluster"
        assert OpenSearchIndex.open(folder).card.documents == 3
        assert read_card(folder).settings["nodes"] == [second.url]


def test_discovery_can_be_turned_off(node, tmp_path):
    with listening() as second:
        node.publishes = [second.address]
        folder = folder_of(tmp_path / "index", node.url, discover=False)
        OpenSearchIndex.open(folder)
        assert second.asked == []
    assert "nodes" not in read_card(folder).settings
    assert not any(path.startswith("/_nodes") for path, _ in node.asked)


def test_a_folder_that_cannot_be_written_is_still_opened(node, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    with listening() as second:
        node.publishes = [second.address]
        folder = folder_of(tmp_path / "index", node.url)
        monkeypatch.setattr("secondlook.retrieve.folder.write_at_once", refuse)
        assert OpenSearchIndex.open(folder).card.documents == 3


def test_credentials_do_not_follow_the_cluster_to_an_address_without_a_certificate(
    node, credentials, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENSEARCH_URL", node.url)
    with listening() as second:
        node.publishes = [second.address]
        OpenSearchIndex.open(folder_of(tmp_path / "index", node.url))
        assert second.asked == []


def test_credentials_follow_the_cluster_to_nodes_with_its_certificates(
    certificate, authority, credentials, home, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(authority.certificate))
    forged = Authority(tmp_path / "forged").issue("node", "IP:127.0.0.1")
    with listening(certificate) as second, listening(forged) as stranger:
        with listening(certificate) as first:
            first.publishes = [second.address, stranger.address]
            folder = folder_of(tmp_path / "index", first.url)
            Access.from_environment({**PASSWORD, "XDG_CONFIG_HOME": str(home.parents[1])}).remember(
                [first.url]
            )
            OpenSearchIndex.open(folder)
        assert stranger.asked == []
        assert second.credentials == {BASIC}
        assert set(home.read_text().split()) >= {first.url, second.url}
        second.publishes = [second.address]
        assert OpenSearchIndex.open(folder).card.documents == 3  # the named node is gone


def test_a_node_that_hangs_is_not_asked_again_while_others_answer(node):
    class Hanging:
        def __enter__(self):
            import socket

            self._socket = socket.create_server(("127.0.0.1", 0))
            return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

        def __exit__(self, *_):
            self._socket.close()

    with Hanging() as url:
        cluster = Cluster.connect(Route((url,), (node.url,)))
        with pytest.raises(EngineProblem, match="did not answer"):
            cluster.request("GET", "/", within=0.2)
        assert cluster.request("GET", "/", within=0.2)["cluster_uuid"] == "this cluster"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{}"),
        ("application/json", b"[]"),
        ("text/plain", b"ok"),
        ("text/html", b"<html><title>Sign in</title>" + b"x" * 9000),
    ],
)
def test_what_is_no_cluster_is_said_in_one_line(node, kind, body, tmp_path):
    index = OpenSearchIndex.open(folder_of(tmp_path / "index", node.url))
    node.answer = kind, body
    settings = OpenSearchSettings(urls=(node.url,), name=NAME)
    for attempt in (
        lambda: OpenSearchIndex.open(tmp_path / "index"),
        lambda: OpenSearchIndex.build(tmp_path / "new", [], settings),
        lambda: index.fetch(["d1"]),
        lambda: index.retrieve([], 1) or index._ask([], 1),
        lambda: index.stored_bytes(),
        lambda: index.delete([]) or index.upsert([]),
    ):
        with pytest.raises(EngineProblem, match="not as a search engine does") as caught:
            attempt()
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize("wrong", [{"urls": []}, {"shards": "many"}, {"nodes": 3}])
def test_a_folder_with_settings_that_make_no_sense_is_one_line(node, wrong, tmp_path):
    folder = folder_of(tmp_path / "index", node.url, **wrong)
    with pytest.raises(IndexProblem, match=rf"{next(iter(wrong))}: .*--replace"):
        OpenSearchIndex.open(folder)


def test_credentials_may_come_from_a_file(node, tmp_path):
    file = tmp_path / "credentials"
    file.write_text("# ours\nOPENSEARCH_USERNAME=eve\nexport OPENSEARCH_PASSWORD='s3cret'\n")
    connected(node.url, {"OPENSEARCH_CREDENTIALS_FILE": str(file)}).ask("GET", "/")
    assert node.credentials == {BASIC}
    changed = {"OPENSEARCH_CREDENTIALS_FILE": str(file), "OPENSEARCH_PASSWORD": "other"}
    assert Access.from_environment(changed).authorization != BASIC  # the environment goes first
    file.write_text("s3cret\n")
    with pytest.raises(EngineProblem, match=r"credentials:1: write OPENSEARCH_USERNAME") as said:
        Access.from_environment({"OPENSEARCH_CREDENTIALS_FILE": str(file)})
    assert "s3cret" not in str(said.value)


@pytest.mark.parametrize(
    ("written", "password"),
    [("s3cret'", "s3cret'"), ('"s3cret\'"', "s3cret'"), ("'s3cret\"", "'s3cret\""), ("'", "'")],
)
def test_a_quote_that_a_password_ends_in_is_kept(tmp_path, written, password):
    file = tmp_path / "credentials"
    file.write_text(f"OPENSEARCH_USERNAME=eve\nOPENSEARCH_PASSWORD={written}\n")
    read = Access.from_environment({"OPENSEARCH_CREDENTIALS_FILE": str(file)})
    given = {"OPENSEARCH_USERNAME": "eve", "OPENSEARCH_PASSWORD": password}
    assert read.authorization == Access.from_environment(given).authorization


def test_requests_are_signed_for_aws_with_the_credentials_of_the_machine(node, monkeypatch):
    pytest.importorskip("botocore")
    for name, value in {"ACCESS_KEY_ID": "AKID", "SECRET_ACCESS_KEY": "s3cret"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    connected(node.url, {"OPENSEARCH_AWS_REGION": "eu-west-1"}).ask("GET", "/", format="json")
    (signature,) = node.credentials
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=AKID/")
    assert "/eu-west-1/es/aws4_request" in signature
    assert "s3cret" not in signature
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(EngineProblem, match="there are no AWS credentials"):
        connected(node.url, {"OPENSEARCH_AWS_REGION": "eu-west-1"})


def test_a_certificate_that_has_expired_is_told_as_such(authority):
    expired = authority.issue("expired", "IP:127.0.0.1", "-days", "0")
    time.sleep(1.1)
    trusted = {"OPENSEARCH_CA_CERTS": str(authority.certificate)}
    with (
        listening(tls=expired) as node,
        pytest.raises(EngineProblem, match=r"has expired.*have it renewed"),
    ):
        connected(node.url, trusted).ask("GET", "/")
    assert node.asked == []


def test_only_pinned_certificates_are_trusted(certificate, authority):
    shown = ssl.PEM_cert_to_DER_cert(certificate[0].read_text())
    pin = hashlib.sha256(shown).hexdigest()
    trusted = {"OPENSEARCH_CA_CERTS": str(authority.certificate)}
    with listening(tls=certificate) as node:
        connected(node.url, {"OPENSEARCH_CERT_FINGERPRINT": f"{pin[::-1]},{pin}"}).ask("GET", "/")
        asked = len(node.asked)
        with pytest.raises(EngineProblem, match=f"not a pinned one, its SHA-256 is {pin}"):
            connected(node.url, {**trusted, "OPENSEARCH_CERT_FINGERPRINT": pin[::-1]}).ask(
                "GET", "/"
            )
        assert len(node.asked) == asked
