"""The tokens of the local stack: signed here, verified here, refused by every deployed stack.

The stacks of one folder share a key. It is a file that only its owner may read, in the folder
`.cache`, so that a token holds when a stack is started again. `duetick token` prints one.
"""

import argparse
import base64
import binascii
import hmac
import json
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from duetick.cli.parsing import note_parser, whole
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import say
from duetick.core.wire import iso
from duetick.domain.identity import check_key

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

TOKEN_HOURS: Final = 12
"""The life of a token, unless its user asks for another."""

MOST_HOURS: Final = 8_760
USER: Final = "you"
FOLDER: Final = ".cache"
NAME: Final = "local-key"
BYTES: Final = 32


def keep_key(project: Path) -> bytes:
    """Return the key of the local stacks of a folder. The first one makes it, for its owner."""
    folder = project / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / NAME
    if not path.exists():
        _make_key(path)
    return _read_key(path)


def _make_key(path: Path) -> None:
    """Write the file beside its place, then link it: of two starts at once, one makes the key."""
    made = path.with_name(f"{NAME}-{secrets.token_hex(4)}")
    made.touch(0o600)
    try:
        made.write_text(secrets.token_hex(BYTES))
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        made.unlink()


def find_key(start: Path) -> tuple[bytes, Path] | None:
    """Return the key of the local stacks of this folder, else of the nearest folder above it."""
    for folder in (start, *start.parents):
        path = folder / FOLDER / NAME
        try:
            if path.is_file():
                return _read_key(path), folder
        except OSError as problem:
            raise CliProblem(
                f"{path} cannot be read ({problem.strerror}). It is the key of a local stack, for "
                "whoever started it: run this as that user, or in another folder."
            ) from problem
    return None


def _read_key(path: Path) -> bytes:
    with suppress(ValueError):
        key = bytes.fromhex(path.read_text())
        if len(key) == BYTES:
            return key
    raise CliProblem(f"{path} is no key of a local stack. Delete it: the next start makes another.")


def operator_of(key: bytes) -> str:
    """Return the operator's token."""
    return f"operator-{hmac.digest(key, b'operator', 'sha256').hex()[:32]}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _sign(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def mint(key: bytes, user_id: str, expires_at: int) -> str:
    """Return a JWT (HS256) for the user. `expires_at` is in seconds."""
    header = _encode(b'{"alg":"HS256","typ":"JWT"}')
    claims = _encode(json.dumps({"sub": user_id, "exp": expires_at}).encode())
    return f"{header}.{claims}.{_encode(_sign(key, f'{header}.{claims}'))}"


def verify(key: bytes, token: str, now: int) -> dict[str, Any] | None:
    """Return the claims of a genuine token that has not expired, or None."""
    signed, _, signature = token.rpartition(".")
    try:
        if not hmac.compare_digest(_sign(key, signed), _decode(signature)):
            return None
        claims: dict[str, Any] = json.loads(_decode(signed.partition(".")[2]))
    except (ValueError, binascii.Error):
        return None
    return claims if claims.get("exp", 0) > now and claims.get("sub") else None


def add_token(commands: "Commands") -> None:
    """Add the command."""
    told = "print a token of the local stack: a user's, or the operator's"
    parser = note_parser(commands.add_parser("token", help=told, description=told))
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--user", default=USER, help=f"the user; default {USER}")
    who.add_argument(
        "--operator", action="store_true", help="the operator's token, which has no end"
    )
    parser.add_argument(
        "--hours", type=whole(1, MOST_HOURS), default=TOKEN_HOURS, help=f"default {TOKEN_HOURS}"
    )
    parser.set_defaults(command=_token)


def _token(chosen: argparse.Namespace) -> None:
    found = find_key(Path.cwd())
    if found is None:
        raise CliProblem(
            "No local stack has run in this folder or above it; `make run` starts one. A deployed "
            "stack takes no token of this command: its users sign in."
        )
    key, folder = found
    if chosen.operator:
        print(operator_of(key))
        say(f"The operator's, for the local stacks of {folder}.")
        return
    if not chosen.user:
        raise WrongUsage("--user: whose token? It has a name.")
    check_key(chosen.user, "key")
    end = int(time.time()) + chosen.hours * 3_600
    print(mint(key, chosen.user, end))
    say(f"A token of {chosen.user}, until {iso(end * 1_000)}, for the local stacks of {folder}.")
