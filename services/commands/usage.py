"""`gateway usage`: print usage and costs of requests."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from services.commands.shared import on_database, print_table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.accounts.v1.usage_pb2 import UsageSum

Grouping = Literal["day", "user", "team", "key", "model", "provider", "tag", "end_user"]

_PAGE_SIZE = 1_000
_COLUMNS = (
    *("requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens", "unpriced", "estimated"),
)


def usage(
    by: Annotated[Grouping, typer.Option("--by", help="Group the sums by this.")] = "day",
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="First day (UTC), for example 2026-11-01.")
    ] = "",
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="Last day (UTC).")] = "",
    tag: Annotated[
        str,
        typer.Option(
            "--tag",
            metavar="KEY[=VALUE]",
            help="With --by tag, the key of the tag; otherwise only usage with this tag, for "
            "example project=alpha.",
        ),
    ] = "",
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Only usage of this user.")
    ] = "",
    end_user: Annotated[
        str, typer.Option("--end-user", help="Only usage of this end user of --user.")
    ] = "",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
) -> None:
    """Print the usage and the cost of requests, in US dollars.

    UNPRICED is the number of answers without a known price; the sums do not include their cost.
    """
    sums = on_database(lambda engine, _: _sums(engine, by, first, last, tag, user, end_user))
    if as_json:
        _print_json(sums, by)
    elif as_csv:
        _print_csv(sums, by)
    else:
        _print_table(sums, by)


async def _sums(
    engine: "AsyncEngine",
    by: Grouping,
    first: str,
    last: str,
    tag: str,
    user: str,
    end_user: str,
) -> "list[UsageSum]":
    from gateway.accounts.v1.usage_pb2 import ReportUsageRequest, UsageFilter, UsageGrouping
    from services.accounts.admin.users import UserAdministration
    from services.accounts.usage.reporting import report

    usage_filter = UsageFilter(end_user=end_user)
    if user:
        usage_filter.user_id = (await UserAdministration(engine).named(user)).id
    if by != "tag":
        usage_filter.tag, tag = tag, ""
    request = ReportUsageRequest(
        tag=tag,
        filter=usage_filter,
        by=UsageGrouping.Value(f"USAGE_GROUPING_{by.upper()}"),
        from_day=first,
        to_day=last,
        page_size=_PAGE_SIZE,
    )
    all_sums: list[UsageSum] = []
    while True:
        page = await report(engine, request)
        all_sums += page.sums
        if not page.next_page_token:
            return all_sums
        request.page_token = page.next_page_token


def _print_table(sums: "list[UsageSum]", by: Grouping) -> None:
    heading = (
        *(by.upper(), "REQUESTS", "FAILED", "INPUT", "OUTPUT", "CACHED", "COST", "UNPRICED"),
        "ESTIMATED",
    )
    rows: list[tuple[str, ...]] = [heading]
    for one in sums:
        counts = (
            *(one.requests, one.failed_requests, one.input_tokens, one.output_tokens),
            one.cached_tokens,
        )
        cost = f"${one.cost_dollars}"
        name = one.name or one.group or "-"
        rows.append((name, *map(str, counts), cost, str(one.unpriced), str(one.estimated)))
    print_table(rows)


def _print_csv(sums: "list[UsageSum]", by: Grouping) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([by, "name", *_COLUMNS, "cost_dollars"])
    for one in sums:
        counts = [getattr(one, name) for name in _COLUMNS]
        writer.writerow([_cell(one.group), _cell(one.name), *counts, one.cost_dollars])


def _print_json(sums: "list[UsageSum]", by: Grouping) -> None:
    import orjson

    for one in sums:
        counts = {name: getattr(one, name) for name in _COLUMNS}
        line = {by: one.group, "name": one.name or None, **counts, "cost": one.cost_dollars}
        typer.echo(orjson.dumps(line).decode())


def _cell(text: str) -> str:
    """Return a caller's text as a CSV cell that spreadsheets do not interpret as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
