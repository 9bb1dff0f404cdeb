"""The documents: every file, module, setting, endpoint, command and target they name exists."""

import re
import tomllib

from services.common.settings import parse
from tests.documents import (
    DOCUMENTS,
    ROOT,
    broken_links,
    code_blocks,
    http_error_codes,
    make_targets,
    read,
    reasons,
    sources,
    unknown_names,
)
from tests.grid import each_row
from tests.newcomer.blocks import blocks
from tests.surface.table import KINDS
from tests.tools import dialect_tables, reference, setting_tables

# It names what is not served.
NAMES_OTHERS = "docs/reference/sdk-methods.md"


@each_row("document", [document for document in DOCUMENTS if document != NAMES_OTHERS])
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
    text = "```sh\nmake nothing\ngateway keys nothing --user ada\ngateway up\n```\n"
    assert unknown_names(text) == ["make nothing", "gateway keys nothing --user ada"]


def test_wrong_links_are_found():
    text = (
        "# A title\n[a](docs/limits.md#bodies) [b](docs/no.md) [c](#a-title) [d](docs/limits.md#no)"
    )
    assert broken_links(text, ROOT) == ["docs/no.md", "docs/limits.md#no"]


def test_every_code_of_an_error_is_explained():
    rows = re.findall(r"^\| \d{3}[^|]*\|([^|]*)\|", read("docs/reference/errors.md"), re.M)
    codes = {code for row in rows for code in re.findall(r"`(\w+)`", row)}
    assert reasons() | http_error_codes() <= codes
    assert {code for code in codes - reasons() if f'"{code}"' not in sources()} == set()


def test_contributing_or_the_readme_names_every_target():
    text = read("README.md") + read("CONTRIBUTING.md")
    unnamed = {name for name in make_targets() if f"make {name}" not in text}
    assert unnamed <= {"clean", "context-sizes", "sdks"}


@each_row("document", DOCUMENTS)
def test_settings_that_are_shown_can_be_loaded(document):
    shown = [block for block in blocks(document) if block.language == "toml" and not block.reason]
    texts = [block.text for block in shown]
    if document == "docs/reference/settings.md":
        texts = ["".join(texts)]  # the tables of one file
    for text in texts:
        parse(tomllib.loads(text), document)


def test_tables_of_settings_are_those_of_the_fields():
    for document in setting_tables.documents():
        text = document.read_text()
        assert text == setting_tables.with_rows(text), f"{document.name}: run make docs"


def test_the_reference_is_that_of_the_code():
    for name, text in reference.pages().items():
        assert read(f"docs/reference/{name}") == text, "run make docs"


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
