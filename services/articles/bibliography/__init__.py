"""Formats of bibliographies: BibTeX, BibLaTeX, RIS, CSL-JSON; no I/O."""
