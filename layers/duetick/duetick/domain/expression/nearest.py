"""Suggestions for an unknown zone name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_ABBREVIATIONS = {
    "America/New_York": "EDT ET EASTERN",
    "America/Chicago": "CST CDT CT CENTRAL",
    "America/Denver": "MDT MT MOUNTAIN",
    "America/Los_Angeles": "PST PDT PT PACIFIC",
    "America/Anchorage": "AKST AKDT ALASKA",
    "America/Halifax": "AST ADT ATLANTIC",
    "America/St_Johns": "NST NDT NEWFOUNDLAND",
    "America/Sao_Paulo": "BRT",
    "America/Argentina/Buenos_Aires": "ART",
    "America/Santiago": "CLT CLST",
    "America/Bogota": "COT",
    "America/Lima": "PET",
    "Pacific/Honolulu": "HAST HDT HAWAII",
    "Europe/London": "BST UK",
    "Europe/Dublin": "IST",
    "Europe/Lisbon": "WEST",
    "Europe/Berlin": "CEST MEZ MESZ",
    "Europe/Athens": "EEST",
    "Europe/Moscow": "MSK",
    "Europe/Istanbul": "TRT",
    "Asia/Kolkata": "IST INDIA",
    "Asia/Jerusalem": "IST IDT",
    "Asia/Karachi": "PKT",
    "Asia/Dubai": "GST",
    "Asia/Dhaka": "BST",
    "Asia/Bangkok": "ICT",
    "Asia/Jakarta": "WIB",
    "Asia/Shanghai": "CST CHINA",
    "Asia/Hong_Kong": "HKT",
    "Asia/Singapore": "SGT",
    "Asia/Manila": "PHT",
    "Asia/Seoul": "KST KOREA",
    "Asia/Tokyo": "JST",
    "Australia/Perth": "AWST",
    "Australia/Adelaide": "ACST ACDT",
    "Australia/Brisbane": "AEST",
    "Australia/Sydney": "AEST AEDT",
    "Pacific/Auckland": "NZST NZDT",
    "Africa/Johannesburg": "SAST",
    "Africa/Lagos": "WAT",
    "Africa/Nairobi": "EAT",
    "Africa/Maputo": "CAT",
    "UTC": "Z",
}
_OFFSET = r"(?:(?:Etc/)?UTC|GMT)? ?([+-])(\d{1,2})(?::?([0-9]{2}))?"
_ENDINGS = (" STANDARD TIME", " DAYLIGHT TIME", " SUMMER TIME", " TIME")


def nearest(name: str, known: Collection[str]) -> Sequence[str]:
    """Return the known zones of an abbreviation, else the known names with a similar spelling."""
    if re.fullmatch(_OFFSET, name, re.IGNORECASE):
        return []  # the similar names have the other sign
    meant = [zone for zone in _find_abbreviation(name) if zone in known]
    return meant or _similar(name, sorted(known))


def zone_of_offset(name: str, known: Collection[str]) -> str:
    """Return the zone of an offset such as `UTC+2` or `-05:00`; "" if there is none.

    The names of such zones count westward: Etc/GMT-2 is two hours ahead of UTC.
    """
    found = re.fullmatch(_OFFSET, name, re.IGNORECASE)
    if not found or (found[3] or "00") != "00":
        return ""
    hours = int(found[2])
    zone = f"Etc/GMT{'-' if found[1] == '+' else '+'}{hours}" if hours else "UTC"
    return zone if zone in known else ""


def _find_abbreviation(name: str) -> list[str]:
    short = name.strip().upper()
    for ending in _ENDINGS:
        short = short.removesuffix(ending)
    return [zone for zone, texts in _ABBREVIATIONS.items() if short in texts.split(" ")]


def _similar(name: str, known: Sequence[str]) -> Sequence[str]:
    spelled = {zone.lower(): zone for zone in known}
    for zone in known:
        spelled.setdefault(zone.rpartition("/")[2].lower(), zone)
    near = get_close_matches(name.lower().replace(" ", "_"), spelled)
    return list(dict.fromkeys(spelled[each] for each in near))
