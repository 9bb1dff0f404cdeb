"""Access tokens: the metadata servers of Google and of Azure, and Google's token endpoint."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

METADATA = "/computeMetadata/v1"
# The same for every address of the endpoint.
_AUDIENCE = "https://oauth2.googleapis.com/token"
_SKEW_S = 300
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_BAD_TIMES = (
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
    "Check your iat and exp values in the JWT claim."
)
EMAIL = "gateway@my-project.iam.gserviceaccount.com"
# What Azure sets in the environment of a program that has an identity.
IDENTITY_HEADER = "a header that only the program knows"


@dataclass
class Tokens:
    """The tokens that were issued.

    Attributes:
        now: returns Unix seconds.
        lasts_s: how long a token is valid.
        issued: the end of each token, in Unix seconds.
        asked: how often a token was requested.
        fails: whether no token is issued.
    """

    now: Callable[[], float] = time.time
    lasts_s: float = 3600
    issued: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    fails: bool = False

    def issue(self, prefix: str) -> str:
        """Return a new token."""
        self.asked += 1
        if self.fails:
            raise web.HTTPServiceUnavailable
        token = f"{prefix}{self.asked:04}-secret-of-a-token"
        self.issued[token] = self.now() + self.lasts_s
        return token

    def accepts(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request has a token that is valid."""
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        return self.issued.get(token, 0) > self.now()


@dataclass
class ServiceAccount:
    """A service account, whose key is new."""

    private: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )

    def file(self, token_uri: str) -> str:
        """Return the content of its file."""
        pem = self.private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        content = {
            "type": "service_account",
            "project_id": "my-project",
            "private_key_id": "1",
            "private_key": pem.decode(),
            "client_email": EMAIL,
            "token_uri": token_uri,
        }
        return json.dumps(content)

    def problem(self, assertion: str, now_s: float) -> str:
        """Return what is wrong with a signed assertion, or ""."""
        signed, _, signature = assertion.rpartition(".")
        try:
            self.private.public_key().verify(
                _decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            return "Invalid JWT Signature."
        claims = json.loads(_decoded(signed.partition(".")[2]))
        if claims["aud"] != _AUDIENCE or claims["iss"] != EMAIL:
            return "Invalid JWT: wrong audience or issuer"
        if not now_s - _SKEW_S <= claims["iat"] <= now_s + _SKEW_S:
            return _BAD_TIMES
        return "" if "cloud-platform" in claims["scope"] else "Invalid OAuth scope"


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def add_tokens(app: web.Application, tokens: Tokens, account: ServiceAccount | None) -> None:
    """Add the endpoints that issue tokens."""
    flavor = {"Metadata-Flavor": "Google"}

    async def metadata(request: web.Request) -> web.Response:
        if request.headers.get("Metadata-Flavor") != "Google":
            raise web.HTTPForbidden
        path = request.match_info["what"]
        if path.endswith("/token"):
            answer = {
                "access_token": tokens.issue("ya29.m"),
                "expires_in": int(tokens.lasts_s),
                "token_type": "Bearer",
            }
            return web.json_response(answer, headers=flavor)
        if path == "project/project-id":
            return web.Response(text="my-project", headers=flavor)
        answer = {"email": EMAIL, "scopes": ["cloud-platform"], "aliases": ["default"]}
        return web.json_response(answer, headers=flavor)

    async def ping(request: web.Request) -> web.Response:
        return web.Response(headers=flavor)

    async def exchange(request: web.Request) -> web.Response:
        form = await request.post()
        assertion = str(form.get("assertion", ""))
        problem = "no account"
        if account is not None:
            problem = account.problem(assertion, tokens.now())
        if form.get("grant_type") != _GRANT or problem:
            error = {"error": "invalid_grant", "error_description": problem or "grant_type"}
            return web.json_response(error, status=400)
        return web.json_response(
            {
                "access_token": tokens.issue("ya29.s"),
                "expires_in": int(tokens.lasts_s),
                "token_type": "Bearer",
            }
        )

    async def identity(request: web.Request) -> web.Response:
        if request.headers.get("X-IDENTITY-HEADER") != IDENTITY_HEADER:
            raise web.HTTPUnauthorized
        end = int(tokens.now() + tokens.lasts_s)
        answer: Mapping[str, Any] = {
            "access_token": tokens.issue("eyJ0."),
            "expires_on": str(end),
            "resource": request.query["resource"],
            "token_type": "Bearer",
        }
        return web.json_response(answer)

    app.router.add_get("/", ping)
    app.router.add_get(f"{METADATA}/{{what:.*}}", metadata)
    app.router.add_post("/token", exchange)
    app.router.add_get("/msi/token", identity)
