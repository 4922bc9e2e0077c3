"""An authority of the lab's own, and certificates that it signs."""

from pathlib import Path

from tests.lab.process import run

CONFIGURATION = """
[ca]
default_ca = own
[own]
new_certs_dir = {folder}
database = {folder}/index
rand_serial = yes
unique_subject = no
default_md = sha256
policy = named
copy_extensions = copy
x509_extensions = signed
[signed]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[named]
commonName = supplied
"""

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
VALID = ("20260101000000Z", "20991231000000Z")
EXPIRED = ("20200101000000Z", "20200201000000Z")


class Authority:
    """An authority that signs certificates. Its files lie in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "index").touch()
        (folder / "configuration").write_text(CONFIGURATION.format(folder=folder))
        self.certificate = folder / "authority.pem"
        self._key = folder / "authority.key"
        made = ("-x509", *KEY, "-days", "3650", "-subj", "/CN=Lab", "-keyout", self._key)
        use = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python asks for it
        _openssl("req", *made, *use, "-out", self.certificate)

    def sign(self, host: str, dates: tuple[str, str] = VALID) -> tuple[Path, Path]:
        """Return a certificate for that host, and its key."""
        made, key, asked = (
            self._folder / f"{host}-{dates[0]}.{kind}" for kind in ("pem", "key", "csr")
        )
        names = ("-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}")
        _openssl("req", *KEY, *names, "-keyout", key, "-out", asked)
        begins, ends = dates
        signs = ("-cert", self.certificate, "-keyfile", self._key, "-in", asked, "-out", made)
        _openssl(
            *("ca", "-batch", "-notext", "-config", self._folder / "configuration"),
            *("-startdate", begins, "-enddate", ends, *signs),
        )
        return made, key


def _openssl(*words: str | Path) -> None:
    run(["openssl", *words])
