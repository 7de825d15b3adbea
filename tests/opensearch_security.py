"""TLS, users and roles of a secured test cluster. Everything here is for loopback and for tests."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_SUBJECT = "/O=secondlook tests/CN={}"


@dataclass(frozen=True)
class User:
    """Somebody whom the cluster knows."""

    name: str
    password: str
    hashed: str
    """The password by bcrypt, at the lowest cost."""
    cluster_permissions: tuple[str, ...] = ()
    index_permissions: tuple[str, ...] = ()
    indices: str = "animals*"
    """Pattern of the names that the index permissions are for."""
    hidden: tuple[str, ...] = ()
    """Fields that the user does not see."""

    @property
    def environment(self) -> dict[str, str]:
        return {"OPENSEARCH_USERNAME": self.name, "OPENSEARCH_PASSWORD": self.password}


ADMIN = User(
    "admin",
    "admin-secret-1",
    "$2y$04$B1SmKjvitInDwixkpjMFm.Jja5teYgxL5.FkWKkJz4oX8aCH/OD7K",
    ("*",),
    ("*",),
    "*",
)
WRITER = User(
    "writer",
    "writer-secret-2",
    "$2y$04$d4qlOiRkgtXLs6Y2iElyEOE011sFCURJWvT5HWfakmKmPkU8Qo45y",
    ("cluster_monitor", "cluster_composite_ops"),
    ("indices_all",),
)
"""May do what docs/how-to/rerank-opensearch.md asks for to make an index."""
READER = User(
    "reader",
    "reader-secret-3",
    "$2y$04$G1I.ZOZ/JR91dRfbeNqPROyTehwPPkSA7yOt9mBOLzlA2AARZ6B9C",
    ("cluster_composite_ops_ro",),
    ("read", "indices:admin/mappings/get"),
)
"""May do what the same page asks for to search one."""

SHOPPER = User(
    "shopper",
    "shopper-secret-4",
    "$2y$04$abcdefghijklmnopqrstuu6MbwYDiUbFOyp0apQNJckDzfZl093xu",
    (),
    ("read",),
    "products*",
)
"""May read one index, and nothing else: no right on the cluster, not even to read the mapping."""
CLERK = User(
    "clerk",
    "clerk-secret-5",
    "$2y$04$bbcdefghijklmnopqrstuumAIzHmZNfa/sAH4F.XXmeWd/BC2sYtS",
    ("indices:data/read/search/template",),
    ("read", "indices:admin/mappings/get"),
    "products*",
    hidden=("description",),
)
"""May read all fields but one."""


class Authority:
    """A certificate authority in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.certificate = folder / "ca.pem"
        self._key = folder / "ca-key.pem"
        _openssl(
            "req", "-x509", *_NEW_KEY, "-days", "2",
            "-subj", _SUBJECT.format("authority"), "-addext", "keyUsage=critical,keyCertSign",
            "-out", self.certificate, "-keyout", self._key,
        )  # fmt: skip

    def issue(self, name: str, valid_for: str, *dates: str) -> tuple[Path, Path]:
        """Certificate and key, valid for such as `IP:127.0.0.1` or `DNS:localhost`.

        `dates` are what openssl says of its validity: two days from now on.
        """
        certificate, key = self._folder / f"{name}.pem", self._folder / f"{name}-key.pem"
        request, extensions = self._folder / "request.pem", self._folder / "extensions"
        extensions.write_text(f"subjectAltName={valid_for}\n")
        _openssl(
            "req", *_NEW_KEY, "-subj", _SUBJECT.format(name),
            "-out", request, "-keyout", key,
        )  # fmt: skip
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
            "-CAcreateserial", *(dates or ("-days", "2")), "-extfile", extensions,
            "-out", certificate,
        )  # fmt: skip
        return certificate, key


class Security:
    """What a cluster needs to be secured: certificates for 127.0.0.1 alone, users and roles."""

    def __init__(
        self, folder: Path, users: tuple[User, ...] = (ADMIN, WRITER, READER, SHOPPER, CLERK)
    ) -> None:
        self.users = users
        self.admin = users[0]
        self.authority = Authority(folder)
        self._node = self.authority.issue("node", "IP:127.0.0.1")

    @property
    def certificate(self) -> Path:
        """What the nodes show."""
        return self._node[0]

    def settings(self) -> dict[str, str]:
        """For opensearch.yml; JSON is YAML too."""
        tls = {
            f"plugins.security.ssl.{layer}.{key}": value
            for layer in ("transport", "http")
            for key, value in {
                "pemcert_filepath": "node.pem",
                "pemkey_filepath": "node-key.pem",
                "pemtrustedcas_filepath": "ca.pem",
            }.items()
        }
        return tls | {
            "plugins.security.ssl.transport.enforce_hostname_verification": "false",
            "plugins.security.ssl.http.enabled": "true",
            "plugins.security.nodes_dn": '["CN=node,O=secondlook tests"]',
            "plugins.security.allow_default_init_securityindex": "true",
        }

    def write(self, config: Path, home: Path) -> None:
        """Certificates, users and roles into a node's folder of settings."""
        for path in (*self._node, self.authority.certificate):
            shutil.copy(path, config)
        folder = config / "opensearch-security"
        shutil.copytree(home / "config" / "opensearch-security", folder)
        users = {
            user.name: {"hash": user.hashed, "backend_roles": [], "reserved": False}
            for user in self.users
        }
        roles = {
            f"{user.name}_role": {
                "cluster_permissions": list(user.cluster_permissions),
                "index_permissions": [
                    {
                        "index_patterns": [user.indices],
                        "allowed_actions": list(user.index_permissions),
                        "fls": [f"~{field}" for field in user.hidden],
                    }
                ],
            }
            for user in self.users
        }
        mapping = {f"{user.name}_role": {"users": [user.name]} for user in self.users}
        for name, kind, content in (
            ("internal_users", "internalusers", users),
            ("roles", "roles", roles),
            ("roles_mapping", "rolesmapping", mapping),
        ):
            about = {"_meta": {"type": kind, "config_version": 2}}
            (folder / f"{name}.yml").write_text(json.dumps(about | content))


class ElasticSecurity(Security):
    """The same for Elasticsearch, whose users and roles are files of its own."""

    def settings(self) -> dict[str, str]:
        """For elasticsearch.yml."""
        tls = {
            f"xpack.security.{layer}.ssl.{key}": value
            for layer in ("transport", "http")
            for key, value in {
                "enabled": "true",
                "certificate": "node.pem",
                "key": "node-key.pem",
                "certificate_authorities": "ca.pem",
            }.items()
        }
        return tls | {
            "xpack.security.enabled": "true",
            "xpack.security.transport.ssl.verification_mode": "certificate",
        }

    def write(self, config: Path, home: Path) -> None:
        """Certificates, users and roles into a node's folder of settings."""
        for path in (*self._node, self.authority.certificate):
            shutil.copy(path, config)
        lines = [f"{user.name}:{user.hashed.replace('$2y$', '$2a$')}\n" for user in self.users]
        (config / "users").write_text("".join(lines))
        others = [user for user in self.users if user is not self.admin]
        roles = {
            f"{user.name}_role": {"indices": [{"names": [user.indices], "privileges": ["read"]}]}
            for user in others
        }
        lines = [f"{role}: {json.dumps(about)}\n" for role, about in roles.items()]
        (config / "roles.yml").write_text("".join(lines))
        held = [f"superuser:{self.admin.name}", *(f"{u.name}_role:{u.name}" for u in others)]
        (config / "users_roles").write_text("".join(f"{line}\n" for line in held))


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
