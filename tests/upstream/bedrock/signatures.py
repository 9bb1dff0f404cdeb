"""Check signatures of requests by computing them again with botocore's signer."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from services.sandbox.model.models import SandboxError

# Credentials of AWS's documentation, and a region.
ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
REGION = "us-east-1"
# The environment of a gateway with these credentials, and with no others.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_SKEW_S = 300
_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/bedrock/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


class SignatureError(SandboxError):
    """Error raised for a request that is not signed, or wrongly.

    Attributes:
        name: the name of AWS's exception.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__("permission", 403, message)
        self.name = name


async def check(request: web.Request, now: Callable[[], float]) -> None:
    """Check the credentials of a request: an API key, or a signature.

    Raises:
        SignatureError: they are missing or wrong.
    """
    authorization = request.headers.get("Authorization", "")
    if authorization.startswith("Bearer ") and len(authorization) > len("Bearer "):
        return
    match = _HEADER.fullmatch(authorization)
    if match is None:
        raise SignatureError("MissingAuthenticationTokenException", "Missing Authentication Token")
    access_key, region, names, signature = match.groups()
    if access_key != ACCESS_KEY:
        raise SignatureError(
            "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    signed = {name: request.headers[name] for name in names.split(";")}
    stamp = signed["x-amz-date"]
    sent_at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    if abs(sent_at - now()) > _SKEW_S:
        raise SignatureError(
            "InvalidSignatureException", f"Signature expired: {stamp} is now earlier than …"
        )
    if ":" in request.raw_path and "/converse" in request.raw_path:  # Anthropic's does not
        raise SignatureError("InvalidSignatureException", "AWS's clients escape the model's name")
    # As it was sent: `raw_path` has the escapes of the path.
    url = f"http://{request.headers['Host']}{request.raw_path}"
    again = AWSRequest(request.method, url, signed, await request.read())
    again.context["timestamp"] = stamp
    signer = SigV4Auth(ReadOnlyCredentials(access_key, SECRET_KEY, None, None), "bedrock", REGION)
    expected = signer.signature(
        signer.string_to_sign(again, signer.canonical_request(again)), again
    )
    if signature != expected or region != REGION or "host" not in signed:
        raise SignatureError(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. "
            "The Canonical String for this request should have been …",
        )
