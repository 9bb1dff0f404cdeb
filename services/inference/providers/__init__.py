"""Providers: one file or package each, translating between the canonical model and a provider's
API.
"""
