"""The list of mutants: each applies to the sources, and names tests that exist."""

from tests.mutants.mutants import ROOT, load


def test_every_mutant_applies() -> None:
    mutants = load()
    assert len({mutant.name for mutant in mutants}) == len(mutants) >= 20
    for mutant in mutants:
        source = (ROOT / mutant.file).read_text()
        assert mutant.applied(source) != source
        assert [test for test in mutant.tests if not (ROOT / test).exists()] == []
