"""Which clusters this user's credentials may go to, and how their certificates are checked.

An index folder names the urls of its cluster, and may come from anybody. So credentials go only to
hosts that the user named: in OPENSEARCH_URL, or when making an index, which a file of the user's
own remembers. Neither that file nor an index folder ever holds a secret, and no folder decides how
certificates are checked: all of that comes from the environment.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from secondlook.data.durable import write_at_once
from secondlook.errors import EngineProblem
from secondlook.retrieve.credentials import AwsSigning, fingerprints, signing, with_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KNOWN = "clusters.txt"
_ABOUT_KNOWN = (
    "# Clusters that secondlook may send credentials to, one url a line: those that you named\n"
    "# when you made an index, and their nodes. Delete a line to take that back.\n"
)


@dataclass(frozen=True, slots=True)
class Access:
    """What the environment says of clusters, and the file of clusters that the user named."""

    urls: tuple[str, ...] = ()
    """OPENSEARCH_URL: where the cluster is, whatever an index folder says."""
    authorization: str | None = field(default=None, repr=False)
    aws: AwsSigning | None = None
    """How requests are signed instead, for a cluster of AWS."""
    authority: str | None = None
    """The file of the certificate authority to trust; None for the usual ones."""
    verify: bool = True
    pins: frozenset[str] = frozenset()
    """SHA-256 fingerprints of the only certificates to trust, whoever issued them."""
    known: Path | None = None
    """The user's file of clusters; None where there is no home to keep it in."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Access:
        """Raises EngineProblem for settings that contradict each other."""
        environ = with_file(environ)
        named = environ.get("OPENSEARCH_URL", "")
        _refuse_password(named)  # before it is split: a password may hold a comma
        urls = named.replace(",", " ").split()
        authorization, aws = signing(environ)
        return cls(
            urls=plain_urls(urls),
            authorization=authorization,
            aws=aws,
            authority=environ.get("OPENSEARCH_CA_CERTS") or None,
            verify=_verify(environ.get("OPENSEARCH_VERIFY_CERTS", "true")),
            pins=fingerprints(environ.get("OPENSEARCH_CERT_FINGERPRINT", "")),
            known=_known_file(environ),
        )

    @property
    def has_credentials(self) -> bool:
        """Whether there is anything that may go to clusters of the user's only."""
        return self.authorization is not None or self.aws is not None

    def may_receive(self, url: str) -> bool:
        """Whether the user has named this host, port and scheme."""
        return origin(url) in {*map(origin, self.urls), *self._remembered()}

    def remember(self, urls: Iterable[str]) -> None:
        """The user named these; later commands may send them credentials.

        Does nothing where the file cannot be written: then OPENSEARCH_URL has to name them.
        """
        before = self._remembered()
        after = before | set(map(origin, urls))
        if self.known is None or not self.has_credentials or after == before:
            return
        with suppress(OSError):
            self.known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_at_once(self.known, _ABOUT_KNOWN + "".join(f"{url}\n" for url in sorted(after)))

    def _remembered(self) -> set[str]:
        if self.known is None:
            return set()
        try:
            lines = self.known.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return set()
        return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


@dataclass(frozen=True, slots=True)
class Route:
    """The nodes to ask, and whether credentials go with the requests."""

    named: tuple[str, ...]
    others: tuple[str, ...] = ()
    """For when no named node answers."""
    access: Access = field(default_factory=Access)
    authorized: bool = False

    @classmethod
    def named_by_user(cls, access: Access, urls: tuple[str, ...]) -> Route:
        """Urls that the user typed; raises EngineProblem where they would leak credentials."""
        if access.has_credentials:
            _refuse_unencrypted(urls)
        return cls(urls, access=access, authorized=access.has_credentials)

    @classmethod
    def named_by_folder(
        cls, access: Access, urls: tuple[str, ...], others: tuple[str, ...]
    ) -> Route:
        """Urls out of an index folder: OPENSEARCH_URL overrides them.

        Where there are credentials, only the nodes that may receive them are asked; if none may,
        all are, without credentials.
        """
        if access.urls:
            return cls.named_by_user(access, access.urls)
        if access.has_credentials:
            trusted = tuple(filter(access.may_receive, urls))
            trusted_others = tuple(filter(access.may_receive, others))
            if trusted or trusted_others:
                _refuse_unencrypted((*trusted, *trusted_others))
                return cls(trusted or trusted_others, trusted_others, access, authorized=True)
        return cls(urls, others, access)

    @property
    def withheld(self) -> bool:
        """Whether there are credentials that these nodes do not get."""
        return self.access.has_credentials and not self.authorized

    @property
    def may_follow(self) -> bool:
        """Whether a node that this cluster names may be asked.

        It would get the credentials too, so its certificate has to vouch for it: an address that
        is the cluster's elsewhere may be somebody else's here.
        """
        encrypted = all(urlsplit(url).scheme == "https" for url in self.named)
        return not self.authorized or (encrypted and self.access.verify)


def plain_urls(urls: Iterable[str]) -> tuple[str, ...]:
    """The urls as they are; raises EngineProblem for one with a password, or that is none."""
    checked = tuple(urls)
    for url in checked:
        _refuse_password(url)
        try:
            parts = urlsplit(url)
            fits = parts.scheme in ("http", "https") and parts.hostname and not parts.query
            _ = parts.port  # raises for what is no number
        except ValueError:
            fits = False
        if not fits:
            raise EngineProblem(
                f"{url!r} is no cluster's url; write it like https://search.example.org:9200"
            )
    return checked


def _refuse_password(url: str) -> None:
    """Raises EngineProblem for any url with an @, whose beginning is then never shown.

    A parser does not tell what is secret: it takes a password with a slash for a path.
    """
    _, at, host = url.rpartition("@")
    if at:
        raise EngineProblem(
            f"a cluster's url must not hold a password (…@{host}): set OPENSEARCH_USERNAME and "
            "OPENSEARCH_PASSWORD in the environment instead"
        )


def origin(url: str) -> str:
    """Scheme, host and port of a url, as the client writes them."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or (443 if parts.scheme == 'https' else 9200)}"


def _refuse_unencrypted(urls: Iterable[str]) -> None:
    """Raises EngineProblem where credentials would leave this machine in the clear."""
    for url in urls:
        if urlsplit(url).scheme != "https" and not _is_loopback(urlsplit(url).hostname or ""):
            raise EngineProblem(
                f"credentials are set, and {url} is not encrypted: give an https url, or unset "
                "OPENSEARCH_USERNAME, OPENSEARCH_PASSWORD, OPENSEARCH_API_KEY, OPENSEARCH_TOKEN "
                "and OPENSEARCH_AWS_REGION for a cluster without users"
            )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _verify(said: str) -> bool:
    if said.casefold() not in ("true", "false"):
        raise EngineProblem(
            f"OPENSEARCH_VERIFY_CERTS is {said!r}: set it to true, or to false to accept any "
            "certificate (for trials only)"
        )
    return said.casefold() == "true"


def _known_file(environ: Mapping[str, str]) -> Path | None:
    try:
        configuration = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    except RuntimeError:  # a user without a home
        return None
    return Path(configuration) / "secondlook" / _KNOWN
