"""Regions of AWS, and the addresses of Bedrock in them. Pure."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import StringConstraints

BEDROCK: Final = "bedrock"
# The variable with an API key, which Bedrock takes in place of signatures.
BEDROCK_KEY: Final = "AWS_BEARER_TOKEN_BEDROCK"
_USUAL_REGION = "us-east-1"
_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_OF_URL = re.compile(r"\bbedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")

AwsRegion = Annotated[
    str, StringConstraints(pattern=r"^([a-z]{2,8}(-[a-z]{2,16}){1,3}-[0-9]{1,2})?$")
]


def default_region(environ: Mapping[str, str]) -> str:
    """Return the region in the environment, or us-east-1."""
    return next((environ[name] for name in _VARIABLES if environ.get(name)), _USUAL_REGION)


def region_of(base_url: str) -> str:
    """Return the region in an address of Bedrock, or ""."""
    match = _OF_URL.search(base_url)
    return match[1] if match else ""


def bedrock_url(region: str) -> str:
    """Return the address of Bedrock's models in a region."""
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://bedrock-runtime.{region}.{domain}"
