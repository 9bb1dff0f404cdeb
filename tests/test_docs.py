"""The documents: every file, module, setting, endpoint, command and target they name exists."""

import re
import tomllib

from services.common.settings import parse
from tests.documents import (
    DOCUMENTS,
    ROOT,
    broken_links,
    code_blocks,
    make_targets,
    read,
    reasons,
    sources,
    unknown_names,
)
from tests.e2e.readme import is_part_of
from tests.grid import each_row
from tests.surface.table import KINDS
from tests.tools import dialect_tables, setting_tables


@each_row("document", DOCUMENTS)
def test_every_name_exists(document):
    assert unknown_names(read(document)) == []


@each_row("document", DOCUMENTS)
def test_every_link_leads_somewhere(document):
    assert broken_links(read(document), (ROOT / document).parent) == []


@each_row(
    "span",
    [
        "facade/nowhere.py",
        "services/nowhere/",
        "nowhere.py",
        "services/inference/providers/<name>/nowhere.py",
        "services.common.nowhere",
        "services.common.errors.Nothing",
        "limits.nothing",
        "tools.web_search.nothing",
        "[limits.nothing]",
        "[providers.openai.nothing]",
        "GATEWAY_NOTHING",
        "/beta/v1/nothing",
        "POST /beta/v1/models",
        "POST /article/v1/block/nothing",
        "x-gateway-nothing: true",
        "gateway_nothing_total",
        "NothingRequest",
        "gateway nothing",
        "gateway keys nothing",
        "make nothing",
    ],
)
def test_a_wrong_name_is_found(span):
    assert unknown_names(f"It is in `{span}`, they say.") == [span]


def test_wrong_commands_in_blocks_are_found():
    text = "```\nmake nothing\ngateway keys nothing --user ada\ngateway up\n```\n"
    assert unknown_names(text) == ["make nothing", "gateway keys nothing --user ada"]


def test_wrong_links_are_found():
    text = (
        "# A title\n[a](docs/limits.md#bodies) [b](docs/no.md) [c](#a-title) [d](docs/limits.md#no)"
    )
    assert broken_links(text, ROOT) == ["docs/no.md", "docs/limits.md#no"]


def test_the_readme_names_every_reason_of_errors():
    section = read("README.md").partition("\n## Errors\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    codes = {code for row in rows[1:] for code in re.findall(r"`(\w+)`", row)}
    assert reasons() <= codes
    assert {code for code in codes - reasons() if f'"{code}"' not in sources()} == set()


def test_contributing_or_the_readme_names_every_target():
    text = read("README.md") + read("CONTRIBUTING.md")
    unnamed = {name for name in make_targets() if f"make {name}" not in text}
    assert unnamed <= {"clean", "context-sizes", "sdks"}


@each_row("document", DOCUMENTS)
def test_settings_that_are_shown_can_be_loaded(document):
    for block in code_blocks(read(document), "toml"):
        parse(tomllib.loads(block), document)


def test_tables_of_settings_are_those_of_the_fields():
    for document in setting_tables.documents():
        text = document.read_text()
        assert text == setting_tables.with_rows(text), f"{document.name}: run make docs"


def test_tables_of_verdicts_are_those_of_the_table():
    text = read("docs/internals/dialects.md")
    assert text == dialect_tables.with_tables(text), "run make docs"
    assert all(f"<!-- verdicts: {dialect} -->" in text for dialect in KINDS)


def test_every_limit_has_a_row():
    rows = [*setting_tables.keys(read("docs/limits.md"))]
    assert len(rows) == len(set(rows))
    assert set(setting_tables.limits()) == set(rows)


@each_row("document", DOCUMENTS)
def test_code_that_is_shown_compiles(document):
    for block in code_blocks(read(document), "python"):
        compile(block, document, "exec")


def test_excerpts_of_scripts_are_in_them():
    pattern = r"`(tests/e2e/\w+\.py)`(?:(?!\n\n).)*\n\n```python\n(.*?)^```"
    shown = [
        (name, code)
        for document in DOCUMENTS
        for name, code in re.findall(pattern, read(document), re.M | re.S)
    ]
    assert len(shown) >= 3
    for name, code in shown:
        code = re.sub(r"  # .*", "", code)
        assert is_part_of(code, ROOT / name), name
