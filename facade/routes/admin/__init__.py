"""Administration: accounts, invitations, limits, usage, providers, audit log, request log."""

from facade.routes.admin import (
    accounts,
    invitations,
    limits,
    model_groups,
    providers,
    reports,
    request_log,
)

ENDPOINTS = (
    *accounts.ENDPOINTS,
    *invitations.ENDPOINTS,
    *limits.ENDPOINTS,
    *model_groups.ENDPOINTS,
    *providers.ENDPOINTS,
    *reports.ENDPOINTS,
    *request_log.ENDPOINTS,
)
