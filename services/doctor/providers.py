"""Checks that each provider answers and accepts its key, by requesting its list of models.

The providers' clocks are compared with this machine's.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from yarl import URL

from services.common import http
from services.common.errors import GatewayError, UpstreamError
from services.common.settings import SANDBOX, Provider, Settings, effective_providers
from services.common.settings.clouds import BEDROCK
from services.doctor.findings import Finding, failure, ok, warning
from services.inference.models import discovery
from services.inference.providers.bedrock.errors import error_name, is_clock_error
from services.inference.providers.credentials.authorizers import Authorizers

_TIMEOUT_S = 10.0
_AWS_ADVICE = (
    "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile or the role, or set an API key "
    "in AWS_BEARER_TOKEN_BEDROCK"
)
_TOKEN_ADVICE = {
    "google": "check GOOGLE_APPLICATION_CREDENTIALS, credentials_file or the machine's identity, "
    "or run `gcloud auth application-default login`",
    "azure": "check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, the workload or "
    "managed identity, or run `az login`",
}
_ROLES = {"google": "roles/aiplatform.user", "azure": "Cognitive Services OpenAI User"}
_CLOCK_ADVICE = "enable NTP (timedatectl set-ntp true)"
_CLOCK_WARNING_S = 5.0
_CLOCK_FAILURE_S = 300.0


class ProviderCheck(NamedTuple):
    """Result of a request to a provider.

    Attributes:
        finding: whether the provider answered and accepted the key.
        ahead_s: seconds by which its clock is ahead of this machine's, or None if unknown.
    """

    finding: Finding
    ahead_s: float | None = None


async def ask_all(settings: Settings, environ: Mapping[str, str]) -> Sequence[ProviderCheck]:
    """Check every provider of the settings and of the environment."""
    providers = effective_providers(settings, environ)
    async with http.Client(settings.limits.connect_timeout_s) as client:
        return await asyncio.gather(
            *(_ask(client, name, provider, environ) for name, provider in providers.items())
        )


async def _ask(
    client: http.Client, name: str, provider: Provider, environ: Mapping[str, str]
) -> ProviderCheck:
    check = f"provider {name}"
    if provider.kind == SANDBOX:
        return ProviderCheck(ok(check, "built-in sandbox"))
    if variable := provider.missing_key(environ):
        advice = f"set {variable} or {variable}_FILE, or api_key_file in [providers.{name}]"
        return ProviderCheck(failure(check, f"no API key: {variable} is not set", advice))
    authorize = Authorizers().of(name, provider, provider.key(environ))
    before = time.time()
    body = b""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            response = await discovery.ask_models(
                client, provider, environ=environ, authorize=authorize
            )
            try:
                if provider.kind == BEDROCK and response.status != 200:
                    body = await response.body.read()
            finally:
                response.body.release()
    except UpstreamError as error:  # without credentials
        return ProviderCheck(failure(check, error.message, _advice_without(provider, error)))
    except (GatewayError, http.HttpError, TimeoutError, OSError) as error:
        words = str(error) or type(error).__name__
        advice = (
            f"check providers.{name}.base_url, the network, and HTTPS_PROXY if a proxy is required"
        )
        return ProviderCheck(failure(check, f"not reachable: {words}", advice))
    ahead_s = _ahead_s(response.headers.get("date", ""), (before + time.time()) / 2)
    if url := await discovery.answering_base_url(client, provider, environ, authorize):
        advice = f'set base_url = "{URL(url).with_user(None)}" in [providers.{name}]'
        return ProviderCheck(failure(check, "no API answers at its base_url", advice), ahead_s)
    if provider.kind == BEDROCK:
        problem = error_name(response.headers, body)
        finding = _bedrock_finding(check, response.status, problem, body)
        return ProviderCheck(finding, ahead_s)
    if provider.tokens_of:
        return ProviderCheck(_token_finding(check, provider, response.status), ahead_s)
    return ProviderCheck(_finding(check, name, response.status), ahead_s)


def _advice_without(provider: Provider, error: UpstreamError) -> str:
    """Return what to do about credentials that the gateway does not get."""
    if "clock" in error.message:
        return _CLOCK_ADVICE
    return _TOKEN_ADVICE.get(provider.tokens_of, _AWS_ADVICE)


def _token_finding(check: str, provider: Provider, status: int) -> Finding:
    advice = _TOKEN_ADVICE[provider.tokens_of]
    if status == 200:
        return ok(check, "reachable; the credentials are valid")
    if status == 401:
        return failure(check, "rejected the access token (HTTP 401)", advice)
    if status == 403:
        role = _ROLES[provider.tokens_of]
        text = "reachable, but the credentials may not list models (HTTP 403)"
        return warning(check, text, f"grant them the role {role}")
    return warning(check, f"the list of models failed with HTTP {status}", "try again later")


def _bedrock_finding(check: str, status: int, problem: str, body: bytes) -> Finding:
    if status == 200:
        return ok(check, "reachable; the credentials are valid")
    if is_clock_error(problem, body.decode("utf-8", "replace")):
        text = "rejected the signature: this machine's clock is off by more than five minutes"
        return failure(check, text, _CLOCK_ADVICE)
    if problem == "AccessDeniedException":
        return warning(
            check,
            "reachable; the credentials are valid, but may not list models",
            "allow bedrock:ListFoundationModels and bedrock:ListInferenceProfiles, and for "
            "requests bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream",
        )
    if status in (401, 403):
        text = f"rejected the credentials (HTTP {status}, {problem or 'no reason given'})"
        return failure(check, text, _AWS_ADVICE)
    return warning(check, f"the list of models failed with HTTP {status}", "try again later")


def _finding(check: str, name: str, status: int) -> Finding:
    if status == 200:
        return ok(check, "reachable; the API key is valid")
    if status in (401, 403):
        advice = f"set a valid API key in [providers.{name}]"
        return failure(check, f"rejected the API key (HTTP {status})", advice)
    if status in (404, 405):
        return warning(
            check,
            f"reachable, but has no list of models (HTTP {status}); the API key was not checked",
            f"check providers.{name}.base_url if requests fail",
        )
    return warning(
        check, f"the request for the list of models failed with HTTP {status}", "try again later"
    )


def _ahead_s(date: str, now_s: float) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - now_s
    except ValueError:
        return None


def clock(compared: Mapping[str, float]) -> Finding:
    """Check this machine's clock against others, given the seconds that each is ahead.

    The clock with the smallest difference decides: another clock may be wrong itself.
    """
    if not compared:
        return ok("clock", "not checked: no provider answered, and SQLite has no clock")
    name, ahead_s = min(compared.items(), key=lambda one: abs(one[1]))
    text = f"{abs(ahead_s):.0f} s {'behind' if ahead_s > 0 else 'ahead of'} the clock of {name}"
    advice = (
        "enable NTP (timedatectl set-ntp true): leases, expiry times and signatures depend on the "
        "clock"
    )
    if abs(ahead_s) >= _CLOCK_FAILURE_S:
        return failure("clock", text, advice)
    if abs(ahead_s) >= _CLOCK_WARNING_S:
        return warning("clock", text, advice)
    return ok("clock", f"same as {name}")
