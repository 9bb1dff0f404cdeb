"""Memories in the database: tables, records, quotas and the stored transcript."""
