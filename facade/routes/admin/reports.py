"""The endpoints of usage and the audit log."""

from facade.dialects.admin import answers, bodies, requests, usage
from facade.routes.admin.call import rpc_endpoint

ENDPOINTS = (
    rpc_endpoint(
        "GET",
        "/usage",
        "reportUsage",
        "Get usage and cost by day, user, team, key, model or provider",
        stub="usage",
        rpc="ReportUsage",
        request=usage.usage_request,
        render=lambda found: answers.render_list(
            found.sums, found.next_page_token, usage.render_sum
        ),
        answer=answers.list_schema(usage.SUM),
        query=usage.UsageQuery,
    ),
    rpc_endpoint(
        "GET",
        "/activity",
        "reportActivity",
        "Get usage and latencies of the last 31 days, by hour, day, user, "
        "team, key, model or provider",
        stub="usage",
        rpc="ReportActivity",
        request=usage.activity_request,
        render=lambda found: answers.render_list(
            found.sums, found.next_page_token, usage.render_activity
        ),
        answer=answers.list_schema(usage.ACTIVITY),
        query=usage.ActivityQuery,
    ),
    rpc_endpoint(
        "GET",
        "/audit",
        "listAuditEntries",
        "List the audit log of all changes, newest first",
        rpc="ListAuditEntries",
        request=requests.list_audit,
        render=lambda found: answers.render_list(
            found.entries, found.next_page_token, answers.render_audit_entry
        ),
        answer=answers.list_schema(answers.AUDIT_ENTRY),
        query=bodies.AuditQuery,
    ),
)
