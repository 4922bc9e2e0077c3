"""The ids of occurrences."""

import secrets


def new_id() -> str:
    """A random id of an occurrence, with the prefix that tells what it names."""
    return f"occ_{secrets.token_hex(12)}"
