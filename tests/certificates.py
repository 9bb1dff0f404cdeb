"""Certificates of an authority that a test makes."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files of an authority, and of one certificate that it has issued.

    Attributes:
        ca: the authority's own certificate.
        certificate: issued for some hosts, and usable by clients.
        key: the private key of `certificate`.
    """

    ca: Path
    certificate: Path
    key: Path

    def client(self, *, shows_certificate: bool = True) -> ssl.SSLContext:
        """Return a context that trusts the authority, with or without a certificate of its own."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if shows_certificate:
            context.load_cert_chain(self.certificate, self.key)
        return context


def issue(folder: Path, *hosts: str) -> Certificates:
    """Make an authority and let it issue a certificate for hosts, by default 127.0.0.1."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    return issue_by(authority, folder, *hosts)


def issue_by(authority: trustme.CA, folder: Path, *hosts: str) -> Certificates:
    """Issue a certificate for hosts by an authority; files from before are replaced."""
    made = Certificates(folder / "ca.pem", folder / "own.pem", folder / "own.key")
    issued = authority.issue_cert(*(hosts or ("127.0.0.1", "localhost")))
    authority.cert_pem.write_to_path(str(made.ca))
    issued.cert_chain_pems[0].write_to_path(str(made.certificate))
    issued.private_key_pem.write_to_path(str(made.key))
    return made
