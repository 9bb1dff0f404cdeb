"""Programs for maintainers, run by targets of the Makefile."""
