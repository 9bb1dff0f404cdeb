"""Backups of a gateway's data on one machine: SQLite and the folder of files."""
