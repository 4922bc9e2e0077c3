"""The rules of zones by their content: a definition names the rules that its times follow.

The package has one tzdata. The rules of another one come from a store, which keeps each content
once.
"""

from hashlib import blake2b

from duetick.domain.expression.errors import InvalidTimezone
from duetick.domain.expression.zones import FAR_ZONES, ZONES, check_zone, rules_of

_digests: dict[str, str] = {}


def digest_of(timezone: str | None) -> str | None:
    """Return the digest of a zone's rules; None without a zone, or if the zone is unknown."""
    if timezone is None:
        return None
    found = _digests.get(timezone)
    if found is None:
        try:
            check_zone(timezone)
        except InvalidTimezone:
            return None
        found = _digests[timezone] = _digest(rules_of(timezone))
    return found


def learn(rules: bytes) -> str:
    """Take rules of another tzdata. Return the name that stands for them where a zone's name does.

    It begins with a sign that no zone's name has, so no schedule can name it.
    """
    name = f"@{_digest(rules)}"
    for zones in (ZONES, FAR_ZONES):
        if name not in zones:
            zones.learn(name, rules)
    return name


def _digest(rules: bytes) -> str:
    return blake2b(rules, digest_size=8).hexdigest()
