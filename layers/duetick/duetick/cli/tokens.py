"""User tokens of the local stack: signed here, verified here, refused by every deployed stack."""

import base64
import binascii
import hmac
import json
from typing import Any, Final

TOKEN_HOURS: Final = 12
"""The life of a token. The stack prints it once, when it starts."""


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
