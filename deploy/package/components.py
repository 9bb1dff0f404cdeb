"""Write the components of the package as a CycloneDX document (a software bill of materials).

They are the Python packages that `requirements-run.lock` names, of which users install those of the
extras that they choose, and the packages whose code is in the built console. Licenses are those
that the installed packages state.

    python deploy/package/components.py dist/sluicegate-0.1.0.cdx.json
"""

import base64
import importlib.metadata
import json
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_PINNED = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)(.*?)(?=^[a-z0-9._-]+==|\Z)", re.M | re.S)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_HEADING = "License-Expression", "License"
# A longer text is the license itself, not its name.
_MAX_NAME = 60
# What builds the console is not in it.
_BUILDS = re.compile(r"node_modules/(esbuild|@esbuild/.*)")


def document(version: str) -> dict[str, Any]:
    """Return the document; equal sources have equal documents."""
    components = [*_python_packages(), *_console_packages()]
    name = "sluicegate"
    root = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    references = [component["bom-ref"] for component in components]
    content = json.dumps([root, components], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, content).urn,
        "version": 1,
        "metadata": {"component": root},
        "components": components,
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": references}],
    }


def _python_packages() -> Iterator[dict[str, Any]]:
    text = (_ROOT / "requirements-run.lock").read_text()
    seen = set()
    for name, version, rest in _PINNED.findall(text):
        purl = f"pkg:pypi/{name}@{version}"
        if purl not in seen:
            seen.add(purl)
            # Each hash is of one file of that version, such as the wheel of a platform.
            yield _component(name, version, purl, _license(name)) | {
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": purl,
                        "hashes": [{"alg": "SHA-256", "content": digest}],
                    }
                    for digest in _HASH.findall(rest)
                ]
            }


def _license(name: str) -> str:
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    texts = (metadata[heading] for heading in _HEADING if heading in metadata)
    named = [text for text in texts if text and len(text) <= _MAX_NAME and "\n" not in text]
    classifiers = metadata.get_all("Classifier") or []
    named += [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: ")]
    return named[0] if named else ""


def _console_packages() -> Iterator[dict[str, Any]]:
    lock = json.loads((_ROOT / "facade/console/package-lock.json").read_text())
    for path, package in sorted(lock["packages"].items()):
        if not path or package.get("dev") or _BUILDS.fullmatch(path):
            continue
        name, version = path.rpartition("node_modules/")[2], package["version"]
        purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        algorithm, _, digest = package["integrity"].partition("-")
        yield _component(name, version, purl, package.get("license", "")) | {
            "hashes": [
                {
                    "alg": algorithm.upper().replace("SHA", "SHA-"),
                    "content": base64.b64decode(digest).hex(),
                }
            ]
        }


def _component(name: str, version: str, purl: str, license_name: str) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    if license_name:
        component["licenses"] = [{"license": {"name": license_name}}]
    return component


if __name__ == "__main__":
    target = Path(sys.argv[1])
    written = document(target.name.split("-")[1].removesuffix(".cdx.json"))
    target.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
