"""Wheels of all dependencies, for platforms without a compiler.

uv resolves the dependencies by the tags of the wheels in the index, and downloads none.
"""

import os
import subprocess
import sys
from pathlib import Path

_PLATFORMS = (
    "x86_64-manylinux_2_28",
    "aarch64-manylinux_2_28",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
)
_PYTHONS = ("3.11", "3.12", "3.13")
# The others need a newer Linux on x86-64.
_EXTRAS = "media,video,telemetry"
# The oldest macOS that the wheels of onnxruntime run on.
_MACOS = "14.0"


def check(wheel: Path) -> None:
    """Check that each platform and Python finds wheels of all dependencies.

    Raises:
        AssertionError: a package has no wheel for some of them.
    """
    requirement = f"sluicegate[{_EXTRAS}] @ {wheel.as_uri()}"
    failures = []
    for platform in _PLATFORMS:
        for python in _PYTHONS:
            resolved = subprocess.run(
                [
                    *(str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet"),
                    *("--only-binary", ":all:", "--python-platform", platform),
                    *("--python-version", python, "-"),
                ],
                input=requirement,
                env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": _MACOS},
                # Outside of the repository, whose settings of uv exclude dependencies.
                cwd=wheel.anchor,
                capture_output=True,
                text=True,
                check=False,
            )
            if resolved.returncode:
                failures.append(f"{platform}, Python {python}: {resolved.stderr}")
    assert not failures, "\n".join(failures)
