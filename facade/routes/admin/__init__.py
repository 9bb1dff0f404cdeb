"""Administration: keys, users, teams, limits, usage, providers, audit log and request log."""

from facade.routes.admin import accounts, limits, model_groups, providers, reports, request_log

ENDPOINTS = (
    *accounts.ENDPOINTS,
    *limits.ENDPOINTS,
    *model_groups.ENDPOINTS,
    *providers.ENDPOINTS,
    *reports.ENDPOINTS,
    *request_log.ENDPOINTS,
)
