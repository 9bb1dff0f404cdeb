"""Administration: keys, users, teams, limits, usage, providers and the audit log."""

from facade.routes.admin import accounts, limits, reports

ENDPOINTS = (*accounts.ENDPOINTS, *limits.ENDPOINTS, *reports.ENDPOINTS)
