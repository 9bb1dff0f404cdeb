// Activity and spend: the caller's own by the public API, and everyone's for administrators.
import { json } from "../../api/client";
import type { NamedLimit } from "../../parts/limit_bars";
import type { LimitUsage } from "../../parts/limit_states";
import { type List, call } from "../../admin/calls";
import type { Scope } from "../../admin/scope";

export interface Latency {
  count: number;
  mean: number;
  p50: number;
  p95: number;
  p99: number;
}

/** What the requests of an hour or a day came to, of one model, user, … where they are split. */
export interface Activity {
  /** The time, as RFC 3339 or as a day. */
  id: string;
  split_id: string | null;
  split_name: string | null;
  requests: number;
  failed_requests: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cache_written_tokens: number;
  /** Decimal dollars. */
  cost: string;
  first_content_ms: Latency | null;
  duration_ms: Latency | null;
}

export type Split = "model" | "user" | "team" | "key" | "provider";

export interface Query {
  /** Unix seconds. */
  since: number;
  by: "hour" | "day";
  split: Split;
}

/** Spending of the month so far. */
export interface Month {
  /** Dollars. */
  spent: number;
  /** Dollars at the end of the month at the present pace; undefined in its first hour. */
  forecast: number | undefined;
}

interface UsageSum {
  cost: string;
}

interface CallerUsage {
  limits: LimitUsage[];
  allowed_models: { subject_kind: LimitUsage["subject_kind"]; models: string[] }[];
  usage: { day: UsageSum; month: UsageSum };
}

interface SubjectLimits {
  subject_name: string;
  usage: LimitUsage[];
}

const MAX_ROWS = 1000;
// Rows of activity that are read for one page, a bound for the browser.
const MAX_PAGES = 20;
const HOUR_MS = 3_600_000;

export async function getActivity(
  scope: Scope,
  { since, by, split }: Query,
  signal?: AbortSignal,
): Promise<Activity[]> {
  const rows: Activity[] = [];
  const options = signal === undefined ? {} : { signal };
  for (let page = "", count = 0; count < MAX_PAGES; count += 1) {
    const query = new URLSearchParams({ by, split_by: split, since: String(since), limit: String(MAX_ROWS) });
    if (page !== "") query.set("page", page);
    const list: List<Activity> =
      scope === "mine"
        ? await json(`/v1/usage/activity?${query}`, options)
        : await call(`/admin/v1/activity?${query}`, options);
    rows.push(...list.data);
    page = list.next_page ?? "";
    if (page === "") break;
  }
  return rows;
}

export interface Spending {
  month: Month;
  limits: NamedLimit[];
  /** Of the caller, what the limits allow; one for each subject that restricts models. */
  allowed: CallerUsage["allowed_models"];
}

/** Return what was spent this month, and the limits with what is left of them. */
export async function getSpending(scope: Scope, now: number, signal?: AbortSignal): Promise<Spending> {
  const options = signal === undefined ? {} : { signal };
  if (scope === "mine") {
    const { limits, allowed_models: allowed, usage } = await json<CallerUsage>("/v1/usage/me", options);
    const named = limits.map((one) => ({ ...one, subject: `${one.subject_kind.replace("_", " ")}` }));
    return { month: monthOf(Number(usage.month.cost), now), limits: named, allowed };
  }
  const first = `${new Date(now).toISOString().slice(0, 7)}-01`;
  const [days, limited] = await Promise.all([
    call<List<UsageSum>>(`/admin/v1/usage?by=day&from_day=${first}&limit=${MAX_ROWS}`, options),
    call<List<SubjectLimits>>(`/admin/v1/limits?limit=${MAX_ROWS}`, options),
  ]);
  const spent = days.data.reduce((sum, { cost }) => sum + Number(cost), 0);
  const limits = limited.data.flatMap(({ subject_name: name, usage }) =>
    usage.map((one) => ({ ...one, subject: `${one.subject_kind.replace("_", " ")} ${name}` })),
  );
  return { month: monthOf(spent, now), limits, allowed: [] };
}

/** Return the spending of a month (UTC) with its forecast. */
export function monthOf(spent: number, now: number): Month {
  const date = new Date(now);
  const start = Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  const passed = now - start;
  return { spent, forecast: passed < HOUR_MS ? undefined : (spent * (end - start)) / passed };
}
