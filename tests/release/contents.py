"""The contents of a wheel."""

import re
import zipfile
from pathlib import Path

PACKAGES = {"services", "facade", "gateway"}
_CONSOLE = re.compile(r"facade/console/dist/(index\.html|assets/main-[\w-]+\.(js|css))")
_RELATIVE = re.compile(r"\]\((?!https?:|mailto:|#)([^)]*)\)")


def check(wheel: Path) -> None:
    """Check the files of a wheel, and its metadata.

    Raises:
        AssertionError: it has files outside of its packages, or lacks the console.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
        entry_points = archive.read(metadata.replace("METADATA", "entry_points.txt")).decode()
    own = {*PACKAGES, metadata.partition("/")[0]}
    assert {name.partition("/")[0] for name in names} == own, sorted(names)
    console = {match[1].rpartition(".")[2] for name in names if (match := _CONSOLE.fullmatch(name))}
    assert console == {"html", "js", "css"}, console
    assert "node_modules" not in "".join(names) and ".tsx" not in "".join(names)
    heading, _, description = text.partition("\n\n")
    for field in ("Author", "License-Expression", "Classifier", "Keywords"):
        assert f"\n{field}: " in heading, field
    assert not _RELATIVE.findall(description), _RELATIVE.findall(description)
    for command in ("gateway", "sluicegate"):
        assert f"{command} = services.cli:main" in entry_points
