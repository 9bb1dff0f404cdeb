// Administration: providers, usage by tag and limits, by administrators.
import { ApiError, json } from "../api/client";
import type { LimitUsage } from "../parts/limit_states";
import { refresh } from "../shell/session";
import { shellWords } from "../words/shell";

const { noSubject } = shellWords.admin;

export interface ProviderModel {
  id: string;
  names: readonly string[];
  healthy: boolean;
  breaker: "closed" | "half_open" | "open";
  /** Unix seconds, or null. */
  retry_at: number | null;
  /** Unix seconds, or null. */
  cooling_until: number | null;
  requests: number;
  failed_requests: number;
  mean_first_content_ms: number | null;
  mean_duration_ms: number | null;
  last_failure: { at: number; reason: string; status: number | null } | null;
}

export interface Provider {
  id: string;
  kind: string;
  status: "healthy" | "degraded" | "down";
  models: readonly ProviderModel[];
}

export interface Providers {
  data: readonly Provider[];
  workers: number;
  window_seconds: number;
  /** The models of the settings that have fallbacks. */
  fallbacks: readonly { id: string; models: readonly string[] }[];
}

/** What the requests of a group came to. */
export interface UsageSum {
  id: string;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  /** Decimal dollars. */
  cost: string;
}

/** Limits of a subject; those that are null do not hold. */
export interface Limits {
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  concurrent_requests: number | null;
  spend_per_day: string | null;
  spend_per_week: string | null;
  spend_per_month: string | null;
  spend_per_period: string | null;
  /** A date (UTC). */
  period_start: string | null;
  period_days: number | null;
  soft_limit_percent: number | null;
  /** The state of each limit on a number; not in the answer to a change. */
  usage?: LimitUsage[];
  allowed_models: readonly string[] | null;
  allowed_model_groups: readonly string[];
}

export interface List<T> {
  data: T[];
  next_page: string | null;
}

const MAX_ROWS = 1000;

/** Call an endpoint; where administration is no longer open, the page asks for an admin key. */
export async function call<T>(path: string, options: Parameters<typeof json>[1] = {}): Promise<T> {
  try {
    return await json<T>(path, options);
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) await refresh();
    throw error;
  }
}

export function getProviders(signal?: AbortSignal): Promise<Providers> {
  return call("/admin/v1/providers", { signal });
}

/** Return the usage since a day by the values of a tag, of the first of them. */
export async function getUsageByTag(
  tag: string,
  since: string,
  signal?: AbortSignal,
): Promise<readonly UsageSum[]> {
  const query = new URLSearchParams({
    by: "tag",
    tag,
    from_day: since,
    limit: String(MAX_ROWS),
  });
  return (await call<List<UsageSum>>(`/admin/v1/usage?${query}`, { signal })).data;
}

/** Return the limits at a path, such as `keys/{key_id}/limits`. */
export function getLimits(path: string, signal?: AbortSignal): Promise<Limits> {
  return call(`/admin/v1/${path}`, { signal });
}

/** Replace the limits at a path; what is null is not limited. */
export function setLimits(path: string, limits: Partial<Limits>): Promise<Limits> {
  return call(`/admin/v1/${path}`, { method: "PUT", json: limits });
}

/** Remove all limits at a path. */
export function removeLimits(path: string): Promise<unknown> {
  return call(`/admin/v1/${path}`, { method: "DELETE" });
}

/** Add decimal dollars to a budget of the limits at a path, until its window ends. */
export function topUpBudget(path: string, name: string, amount: string): Promise<unknown> {
  return call(`/admin/v1/${path}/top-up`, { method: "POST", json: { name, amount } });
}

/** Count the spending of a budget of the limits at a path from 0 on. */
export function resetBudget(path: string, name: string): Promise<unknown> {
  return call(`/admin/v1/${path}/reset`, { method: "POST", json: { name } });
}

/** Return the id of the user with a name. */
export function userId(name: string): Promise<string> {
  return idOf("users", name, "user");
}

/** Return the id of the team with a name. */
export function teamId(name: string): Promise<string> {
  return idOf("teams", name, "team");
}

async function idOf(list: string, name: string, kind: keyof typeof noSubject): Promise<string> {
  const query = new URLSearchParams({ name });
  const { data } = await call<List<{ id: string }>>(`/admin/v1/${list}?${query}`);
  const [one] = data;
  if (one === undefined) throw new Error(noSubject[kind](name));
  return one.id;
}
