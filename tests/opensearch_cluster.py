"""A real cluster on loopback ports, started and killed by the tests themselves.

The engines come from npm packages pinned by hash (`tests/opensearch/install`, `install-full` beside
it); they are for tests only. A node is one JVM in a process group of its own, and dies with the
test run.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opensearch_security import Security

_NOBODY = 65534  # the engines refuse to run as root
_START_SECONDS = 180


class Unavailable(Exception):
    """The engine, or a Java that runs it, is not installed here."""


@dataclass(frozen=True)
class Distribution:
    """An engine as its makers unpack it."""

    name: str
    home: Path
    install: Path
    prefix: str
    """Of the environment variables that its start script reads."""
    managers: str
    """What it calls the nodes that may be elected."""
    modules: tuple[str, ...]
    """What indexing and searching take; the rest would only slow the start."""
    plugins: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def with_plugins(self, *names: str) -> Distribution:
        """The same engine with these of its plugins."""
        return replace(self, plugins=names)


_HERE = Path(__file__).parent
_MODULES = ("analysis-common", "lang-painless", "reindex", "transport-netty4")

OPENSEARCH = Distribution(
    name="opensearch",
    home=_HERE / "opensearch/node_modules/@dragon-den/dopensearch/target",
    install=_HERE / "opensearch/install",
    prefix="OPENSEARCH",
    managers="cluster_manager",
    modules=_MODULES,
)
FULL_OPENSEARCH = replace(
    OPENSEARCH,
    home=_HERE / "opensearch/full/node_modules/unpacked",
    install=_HERE / "opensearch/install-full",
)
"""Has the plugins opensearch-security and opensearch-knn, to be chosen by `with_plugins`."""
ELASTICSEARCH = Distribution(
    name="elasticsearch",
    home=_HERE / "elasticsearch/node_modules/unpacked",
    install=_HERE / "elasticsearch/install",
    prefix="ES",
    managers="master",
    modules=(*_MODULES, "apm", "rest-root", "x-pack-core", "x-pack-security"),
    settings=(("xpack.security.enabled", "false"),),
)


class Cluster:
    """One node or several; use as a context manager."""

    def __init__(
        self,
        nodes: int,
        distribution: Distribution = OPENSEARCH,
        heap: str = "512m",
        security: Security | None = None,
    ) -> None:
        if not distribution.home.is_dir():
            raise Unavailable(f"no {distribution.name} to test with: run {distribution.install}")
        if os.geteuid() == 0 and shutil.which("setpriv") is None:
            raise Unavailable(
                f"{distribution.name} refuses to run as root, and there is no setpriv"
            )
        self._distribution = distribution
        self._heap = heap
        self._security = security
        self._java = _java_home()
        self._folder = Path(tempfile.mkdtemp(prefix="secondlook-cluster-"))
        ports = _free_ports(2 * nodes)
        self._http, self._transport = ports[:nodes], ports[nodes:]
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def urls(self) -> tuple[str, ...]:
        scheme = "http" if self._security is None else "https"
        return tuple(f"{scheme}://127.0.0.1:{port}" for port in self._http)

    def __enter__(self) -> Cluster:
        try:
            self._unpack()
            for node in range(len(self._http)):
                self._launch(node)
            self.wait(nodes=len(self._http))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def manager(self) -> int:
        """The node that the others have elected."""
        (elected,) = self.get(0, "/_cat/master?format=json")
        return int(elected["node"].removeprefix("node-"))

    def kill(self, node: int) -> None:
        """SIGKILL, as a machine that loses power."""
        process = self._running.pop(node)
        with suppress(ProcessLookupError):  # it may have died by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def restart(self, node: int) -> None:
        """Start a killed node on the data it left, and wait until every shard has its copies."""
        self._launch(node)
        self.wait(nodes=len(self._running), status="green")

    def stop(self) -> None:
        for node in list(self._running):
            self.kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)

    def wait(self, nodes: int, status: str = "yellow") -> None:
        """Until so many nodes have joined and the cluster is at least so healthy."""
        deadline = time.monotonic() + _START_SECONDS
        query = f"/_cluster/health?wait_for_nodes={nodes}&wait_for_status={status}&timeout=5s"
        while time.monotonic() < deadline:
            for node, process in self._running.items():
                if process.poll() is not None:
                    raise RuntimeError(f"node {node} died at its start:\n{self._log(node)}")
            for node in self._running:
                try:
                    health = self.get(node, query)
                except (urllib.error.URLError, ConnectionError, TimeoutError):
                    continue
                if not health["timed_out"]:
                    return
            time.sleep(0.2)
        logs = "\n".join(self._log(node) for node in self._running)
        raise RuntimeError(f"{nodes} nodes were not up in {_START_SECONDS} s:\n{logs}")

    def get(self, node: int, path: str) -> Any:
        """What a node answers (the administrator), by urllib rather than by the code under test."""
        request, context = urllib.request.Request(self.urls[node] + path), None
        if self._security:
            admin = self._security.admin
            secret = b64encode(f"{admin.name}:{admin.password}".encode()).decode()
            request.add_header("authorization", f"Basic {secret}")
            context = ssl.create_default_context(cafile=self._security.authority.certificate)
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return json.load(answer)

    def _unpack(self) -> None:
        """A copy of the engine that the unprivileged user may read, without what we never use."""
        source, home = self._distribution.home, self._folder / "home"
        for part in ("bin", "lib"):
            shutil.copytree(source / part, home / part)
        for module in self._distribution.modules:
            shutil.copytree(source / "modules" / module, home / "modules" / module)
        for plugin in self._distribution.plugins:
            shutil.copytree(source / "plugins" / plugin, home / "plugins" / plugin)
        for folder in ("plugins", "logs"):
            (home / folder).mkdir(exist_ok=True)
        for script in (home / "bin").iterdir():
            script.chmod(0o755)
        for node, port in enumerate(self._http):
            self._configure(node, port)
        if os.geteuid() == 0:
            for path in (self._folder, *self._folder.rglob("*")):
                os.chown(path, _NOBODY, _NOBODY)

    def _configure(self, node: int, port: int) -> None:
        name, folder = self._distribution.name, self._folder / f"node-{node}"
        for part in ("config", "tmp"):
            (folder / part).mkdir(parents=True)
        for file in ("jvm.options", "log4j2.properties"):
            shutil.copy(self._distribution.home / "config" / file, folder / "config")
        names = json.dumps([f"node-{other}" for other in range(len(self._http))])
        seeds = json.dumps([f"127.0.0.1:{other}" for other in self._transport])
        settings = {
            "cluster.name": f"secondlook-{self._http[0]}",
            "node.name": f"node-{node}",
            "path.data": str(folder / "data"),
            "path.logs": str(folder / "logs"),
            "network.host": "127.0.0.1",
            "http.port": str(port),
            "transport.port": str(self._transport[node]),
            "discovery.seed_hosts": seeds,
            f"cluster.initial_{self._distribution.managers}_nodes": names,
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            **dict(self._distribution.settings),
        }
        if self._security:
            self._security.write(folder / "config", self._distribution.home)
            settings |= self._security.settings()
        lines = "".join(f"{key}: {value}\n" for key, value in settings.items())
        (folder / "config" / f"{name}.yml").write_text(lines)

    def _launch(self, node: int) -> None:
        prefix, name = self._distribution.prefix, self._distribution.name
        folder = self._folder / f"node-{node}"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            f"{prefix}_JAVA_HOME": str(self._java),
            # A node lives for a minute or two: the thorough compiler only delays its start.
            f"{prefix}_JAVA_OPTS": f"-Xms{self._heap} -Xmx{self._heap} -XX:TieredStopAtLevel=1",
            f"{prefix}_TMPDIR": str(folder / "tmp"),
            f"{prefix}_PATH_CONF": str(folder / "config"),
            "LD_LIBRARY_PATH": str(self._folder / "home/plugins/opensearch-knn/lib"),
        }
        command = [str(self._folder / "home" / "bin" / name)]
        if shutil.which("setpriv"):  # of util-linux
            command = ["setpriv", "--pdeathsig", "KILL", *_as_nobody(), *command]
        with (self._folder / f"node-{node}.log").open("ab") as log:
            self._running[node] = subprocess.Popen(
                command,
                cwd=self._folder / "home",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _log(self, node: int) -> str:
        lines = (self._folder / f"node-{node}.log").read_text(errors="replace").splitlines()
        return "\n".join([f"--- node {node}", *lines[-30:]])


def _as_nobody() -> list[str]:
    user = str(_NOBODY)
    return ["--reuid", user, "--regid", user, "--clear-groups"] if os.geteuid() == 0 else []


def _java_home() -> Path:
    """A Java 17 to 23: the engines need the first, and fail on the loss of its SecurityManager."""
    named = [
        Path(os.environ[name])
        for name in ("OPENSEARCH_JAVA_HOME", "JAVA_HOME")
        if name in os.environ
    ]
    found = shutil.which("java")
    on_path = [Path(found).resolve().parent.parent] if found else []
    for home in (*named, *on_path, *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        if release.is_file() and (home / "bin" / "java").is_file():
            version = dict(
                line.split("=", 1) for line in release.read_text().splitlines() if "=" in line
            ).get("JAVA_VERSION", '"0"')
            if 17 <= int(version.strip('"').split(".")[0]) <= 23:
                return home
    raise Unavailable("no Java between 17 and 23; install one, or name it in JAVA_HOME")


def _free_ports(count: int) -> list[int]:
    """Below the range the kernel gives to clients, so that a killed node finds its port again."""
    free: list[int] = []
    for port in random.sample(range(20_000, 32_000), 1000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        free.append(port)
        if len(free) == count:
            return free
    raise RuntimeError("no free loopback ports")
