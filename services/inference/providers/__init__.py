"""Providers: one file or package each, translating between the canonical request and answer and a
provider's API.
"""
