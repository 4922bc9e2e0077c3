"""The user that functions connect as: it reads and writes our tables, and owns none.

The schema's owner makes it, and grants anew what it needs after each migration. What others keep in
the same database is not its affair.
"""

import base64
import hashlib
import hmac
import secrets
from typing import Final

from duetick.stores.postgres.connecting import Password
from duetick.stores.sql.session import Database, Session
from duetick.stores.sql.store import OF_USERS

ROUTINES: Final = (
    "rows_expected", "time_of", "occurrence_begin", "retry_delay", "occurrence_settle",
)  # fmt: skip
ROUNDS: Final = 4_096


def admit(database: Database, user: str, password: Password) -> None:
    """Let the user do what the functions do. One that is not there is made, with that password.

    One that is there keeps the password that it has, and looks for tables where it did.
    """
    with database.migration() as session:
        if not session.rows("role_get", {"user": user}):
            verifier = scram_verifier(password() or "")
            _say(session, "role_create", {"user": user, "verifier": verifier})
            _say(session, "role_looks_where_we_do", {"user": user})
        for query in ("role_use_schema", "role_read_version"):
            _say(session, query, {"user": user})
        for table in OF_USERS:
            _say(session, "role_use_table", {"user": user, "table": table})
        for routine in ROUTINES:
            _say(session, "role_use_routine", {"user": user, "routine": routine})


def _say(session: Session, query: str, params: dict[str, str]) -> None:
    """Such statements take no parameters: the database itself puts the names into one."""
    ((statement,),) = session.rows(query, params)
    session.script(str(statement))


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """What Postgres keeps of a password: it is not sent, and stands in no log of statements."""
    salt = salt or secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ROUNDS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    coded = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${ROUNDS}:{coded[0]}${coded[1]}:{coded[2]}"
