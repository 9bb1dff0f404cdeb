"""Clouds as providers: their regions, their addresses, and their usual variables. Pure."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import StringConstraints
from yarl import URL

BEDROCK: Final = "bedrock"
VERTEX: Final = "vertex"
# The variable with an API key, which Bedrock takes in place of signatures.
BEDROCK_KEY: Final = "AWS_BEARER_TOKEN_BEDROCK"
# Whose credentials requests have in place of an API key.
Credentials = Literal["", "azure", "google"]

_AWS_REGION = re.compile(r"[a-z]{2,8}(-[a-z]{2,16}){1,3}-[0-9]{1,2}")
_USUAL_REGION = "us-east-1"
_AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_OF_AWS_URL = re.compile(r"\bbedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")

_GLOBAL = "global"
_GOOGLE_REGIONS = ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
_GOOGLE_PROJECTS = ("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID")
_MULTI_REGIONS = ("us", "eu")
# Variables of Google's and Anthropic's clients that choose Vertex AI.
_CHOOSE_VERTEX = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
_TRUE = ("true", "1")

_AZURE_DEPLOYMENTS = re.compile(r"/openai(?:/v1)?/?$|/$")
_AZURE_DOMAINS = {".azure.us": "azure.us", ".azure.cn": "azure.cn"}
# Set where a program has an identity: by its operator, in Kubernetes, in Azure's services.
_AZURE_IDENTITIES = ("AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT")
_FOUNDRY = ".services.ai.azure.com"

Region = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{0,40}$")]
Project = Annotated[
    str, StringConstraints(pattern=r"^([a-z0-9.-]{1,60}:)?[a-z0-9-]{0,40}$", max_length=100)
]
ApiVersion = Annotated[str, StringConstraints(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2}(-[a-z]+)?)?$")]


def complete_section(fields: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the section of a provider with what follows from its region and the environment.

    Raises:
        ValueError: a region is none, or a project is missing.
    """
    match fields.get("kind"):
        case "bedrock":
            return _of_bedrock(fields, environ)
        case "vertex":
            return _of_vertex(fields, environ)
    if fields.get("api_version") and isinstance(fields.get("base_url"), str):
        base = _AZURE_DEPLOYMENTS.sub("", fields["base_url"])
        return {**fields, "base_url": f"{base}/openai"}
    return fields


def _of_bedrock(fields: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, Any]:
    region = (
        fields.get("region")
        or aws_region_of(str(fields.get("base_url", "")))
        or default_region(environ)
    )
    if not isinstance(region, str):
        return fields
    if not _AWS_REGION.fullmatch(region):
        raise ValueError("region: must be a region of AWS, such as us-east-1")
    return {"base_url": bedrock_url(region), **fields, "region": region}


def _of_vertex(fields: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, Any]:
    region = fields.get("region") or _first(_GOOGLE_REGIONS, environ) or _GLOBAL
    project = fields.get("project") or _first(_GOOGLE_PROJECTS, environ)
    if not isinstance(region, str):
        return fields
    if not project:
        raise ValueError("project: required; the id of a Google Cloud project")
    return {"base_url": vertex_url(region), **fields, "region": region, "project": project}


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def default_region(environ: Mapping[str, str]) -> str:
    """Return the region of AWS in the environment, or us-east-1."""
    return _first(_AWS_REGIONS, environ) or _USUAL_REGION


def aws_region_of(base_url: str) -> str:
    """Return the region in an address of Bedrock, or ""."""
    match = _OF_AWS_URL.search(base_url)
    return match[1] if match else ""


def bedrock_url(region: str) -> str:
    """Return the address of Bedrock's models in a region."""
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://bedrock-runtime.{region}.{domain}"


def vertex_url(region: str) -> str:
    """Return the address of Vertex AI in a region, in a multi-region, or of all (`global`)."""
    if region == _GLOBAL:
        return "https://aiplatform.googleapis.com"
    if region in _MULTI_REGIONS:
        return f"https://aiplatform.{region}.rep.googleapis.com"
    return f"https://{region}-aiplatform.googleapis.com"


def azure_scope(base_url: str) -> str:
    """Return the scope of Entra ID's tokens for an address of Azure."""
    host = URL(base_url).host or ""
    if host.endswith(_FOUNDRY):
        return "https://ai.azure.com/.default"
    domain = next((one for end, one in _AZURE_DOMAINS.items() if host.endswith(end)), "azure.com")
    return f"https://cognitiveservices.{domain}/.default"


def chosen_clouds(environ: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the sections of clouds that the environment chooses, without a key of their own.

    Vertex AI by the variables of Google's and Anthropic's clients, Azure by the address of a
    resource with an identity. Credentials of a cloud alone choose nothing: they are often for
    something else.
    """
    sections: dict[str, Mapping[str, Any]] = {}
    is_vertex = any(environ.get(name, "").lower() in _TRUE for name in _CHOOSE_VERTEX)
    if (is_vertex and _first(_GOOGLE_PROJECTS, environ)) or environ.get(_GOOGLE_PROJECTS[1]):
        sections[VERTEX] = complete_section({"kind": VERTEX}, environ)
    resource = environ.get("AZURE_OPENAI_ENDPOINT", "").rstrip("/")
    has_identity = _first(_AZURE_IDENTITIES, environ)
    if resource and has_identity and not environ.get("AZURE_OPENAI_API_KEY"):
        base_url = f"{resource}/openai/v1"
        sections["azure"] = {"kind": "openai", "base_url": base_url, "credentials": "azure"}
    return sections
