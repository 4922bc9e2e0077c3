"""The problems of a call to AWS, and what to do about each.

A problem is known by the name of its class, or by the code of AWS's answer: botocore has many.
"""

import os
from collections.abc import Mapping
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from duetick.domain.redaction import redact_text

AWS_PROBLEMS: Final = (BotoCoreError, ClientError, ResponseParserError, ValueError)
"""The errors of a call to AWS. An endpoint that is no URL is a ValueError."""

ENDPOINT: Final = "AWS_ENDPOINT_URL"

REGION: Final = "Set AWS_DEFAULT_REGION to a region of AWS, such as eu-central-1."
PROFILE: Final = (
    "Set AWS_PROFILE to one that `aws configure list-profiles` shows, or unset it to use another "
    "way in."
)
SIGN_IN: Final = (
    "Sign in (`aws sso login`), or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)
EXPIRED: Final = "Sign in again: the credentials of this shell have ended, or its clock is wrong."
UNKNOWN: Final = "AWS does not know the credentials of this shell: sign in again, or set others."
NO_SUCH: Final = "Are its name, the region and the account those of its deployment?"
OUT_OF_REACH: Final = "Is the region right, and does this machine reach AWS?"

ADVICE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("NoRegionError", "InvalidRegionError"), REGION),
    "ProfileNotFound": PROFILE,
    **dict.fromkeys(
        (
            *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
            *("SSOTokenLoadError", "UnauthorizedSSOTokenError", "TokenRetrievalError"),
            *("MissingAuthenticationToken", "NoAuthTokenError"),
        ),
        SIGN_IN,
    ),
    **dict.fromkeys(
        (
            *("ExpiredToken", "ExpiredTokenException", "RequestExpired"),
            *("RequestTimeTooSkewed", "TokenRefreshRequired"),
        ),
        EXPIRED,
    ),
    **dict.fromkeys(
        (
            *("InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId"),
            *("SignatureDoesNotMatch", "InvalidSignatureException", "IncompleteSignature"),
        ),
        UNKNOWN,
    ),
    **dict.fromkeys(("ValidationError", "ResourceNotFoundException"), NO_SUCH),
    **dict.fromkeys(
        (
            *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError"),
            *("ConnectionClosedError", "ProxyConnectionError", "SSLError", "HTTPClientError"),
        ),
        OUT_OF_REACH,
    ),
}


def what_helps(problem: Exception, otherwise: str = "") -> str:
    """Return the problem in AWS's words, and the next step. `otherwise` is the step for any other
    problem, such as a missing right.
    """
    said = str(problem).strip().partition("\n")[0].rstrip(".:")
    if isinstance(problem, ClientError):
        name = problem.response["Error"]["Code"]
    else:
        name = type(problem).__name__
    advice = ADVICE.get(name, otherwise)
    elsewhere = os.environ.get(ENDPOINT, "")
    is_of_aws = isinstance(problem, BotoCoreError | ClientError)
    if elsewhere and (advice == OUT_OF_REACH or not is_of_aws):
        advice = f"{ENDPOINT} is {elsewhere}: unset it for AWS, or let it name what emulates AWS."
    return redact_text(f"({said}). {advice}".rstrip()) or ""
