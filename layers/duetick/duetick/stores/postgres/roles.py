"""The database user of the functions: it reads and writes our tables, and owns none.

The schema's owner makes the user, and grants its rights again after each migration. The user gets
no rights on other tables of the same database.
"""

from base64 import b64encode
from secrets import token_bytes
from typing import Final

from scramp import ScramException, ScramMechanism

from duetick.domain.errors import ConfigurationError
from duetick.stores.postgres.connecting import Password
from duetick.stores.postgres.kept import routines
from duetick.stores.sql.schema import OF_NOBODY, OF_USERS
from duetick.stores.sql.session import Database, Session

ROUTINES: Final = ("rows_expected", *(one.name for one in routines().values()))
MECHANISM: Final = "SCRAM-SHA-256"
ROUNDS: Final = 4_096


def admit(database: Database, user: str, password: Password) -> None:
    """Grant the user the rights that the functions need.

    If the user does not exist, make it with that password. If it exists, its password and its
    search path stay.
    """
    with database.migration() as session:
        if not session.rows("role_get", {"user": user}):
            verifier = scram_verifier(password() or "")
            _execute(session, "role_create", {"user": user, "verifier": verifier})
            _execute(session, "role_set_search_path", {"user": user})
        for query in ("role_use_schema", "role_read_version"):
            _execute(session, query, {"user": user})
        for table in (*OF_USERS, *OF_NOBODY):
            _execute(session, "role_use_table", {"user": user, "table": table})
        for routine in ROUTINES:
            _execute(session, "role_use_routine", {"user": user, "routine": routine})


def _execute(session: Session, query: str, params: dict[str, str]) -> None:
    """Run a statement that the query builds: a GRANT or CREATE ROLE takes no parameters."""
    ((statement,),) = session.rows(query, params)
    session.script(str(statement))


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """Return the verifier that Postgres stores in place of the password.

    The password itself is not sent, so no log of statements shows it. It is prepared as clients
    prepare it at login: a no-break space becomes a blank.
    """
    try:
        made = ScramMechanism(MECHANISM).make_auth_info(password, ROUNDS, salt or token_bytes(16))
    except ScramException:
        raise ConfigurationError(
            "The password of the functions' user holds a character that no login may send (a "
            "control character, one without a meaning, or right-to-left text beside other text). "
            "Make another, best of plain letters and digits."
        ) from None
    *coded, rounds = (each if isinstance(each, int) else b64encode(each).decode() for each in made)
    return "{}${}:{}${}:{}".format(MECHANISM, rounds, *coded)
