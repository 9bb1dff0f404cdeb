// Activity as lines of charts: one for each model, user, … that was used most, one for all others.
import type { Line } from "../../parts/chart";
import type { Activity } from "./activity";

export const PERCENTILES = ["p50", "p95", "p99"] as const;
export type Percentile = (typeof PERCENTILES)[number];

export interface Series {
  /** Unix seconds, ascending, without gaps. */
  times: number[];
  requests: Line[];
  errors: Line[];
  tokens: Line[];
  /** The part of the input tokens that came from a provider's cache, 0 to 1. */
  cached: Line[];
  /** Dollars. */
  cost: Line[];
  /** In milliseconds; without a line for all others, whose percentile is not known. */
  duration: Line[];
  /** Until the first content, in milliseconds. */
  first: Line[];
}

/** What all requests of a period came to. */
export interface Totals {
  requests: number;
  errors: number;
  tokens: number;
  cost: number;
  /** 0 to 1; undefined without input tokens. */
  cached: number | undefined;
  /** Mean duration in milliseconds; undefined without a request that succeeded. */
  duration: number | undefined;
}

const MAX_LINES = 6;

export interface Period {
  since: number;
  until: number;
  stepS: number;
}

/** Return the lines of a period; hours or days without requests are zeros. */
export function toSeries(
  rows: readonly Activity[],
  { since, until, stepS }: Period,
  percentile: Percentile,
  names: { none: string; others: string },
): Series {
  const first = Math.floor(since / stepS) * stepS;
  const times: number[] = [];
  for (let time = first; time < until; time += stepS) times.push(time);
  const nameOf = (row: Activity): string => row.split_name || row.split_id || names.none;
  const shown = mostUsed(rows, nameOf);
  const isAll = new Set(rows.map(nameOf)).size <= MAX_LINES;
  const all = isAll ? shown : [...shown, names.others];
  const lines = (empty: number | null): Map<string, Line> =>
    new Map(all.map((name) => [name, { name, values: times.map(() => empty) }]));
  const sums = { requests: lines(0), errors: lines(0), tokens: lines(0), cost: lines(0) };
  const parts = { cached: lines(0), input: lines(0) };
  const latencies = { duration: lines(null), first: lines(null) };
  for (const row of rows) {
    const index = (Date.parse(row.id) / 1000 - first) / stepS;
    const name = shown.includes(nameOf(row)) ? nameOf(row) : names.others;
    add(sums.requests.get(name), index, row.requests);
    add(sums.errors.get(name), index, row.failed_requests);
    add(sums.tokens.get(name), index, inputOf(row) + row.output_tokens);
    add(sums.cost.get(name), index, Number(row.cost));
    add(parts.cached.get(name), index, row.cached_tokens);
    add(parts.input.get(name), index, inputOf(row));
    if (name === names.others) continue;
    if (row.duration_ms) add(latencies.duration.get(name), index, row.duration_ms[percentile]);
    if (row.first_content_ms) add(latencies.first.get(name), index, row.first_content_ms[percentile]);
  }
  latencies.duration.delete(names.others);
  latencies.first.delete(names.others);
  const list = (map: Map<string, Line>): Line[] => [...map.values()];
  return {
    times,
    requests: list(sums.requests),
    errors: list(sums.errors),
    tokens: list(sums.tokens),
    cost: list(sums.cost),
    cached: list(parts.cached).map((line) => divided(line, parts.input.get(line.name))),
    duration: list(latencies.duration),
    first: list(latencies.first).filter(({ values }) => values.some((value) => value !== null)),
  };
}

export function totalsOf(rows: readonly Activity[]): Totals {
  const sum = (of: (row: Activity) => number): number => rows.reduce((all, row) => all + of(row), 0);
  const input = sum(inputOf);
  const measured = sum(({ duration_ms: one }) => one?.count ?? 0);
  return {
    requests: sum(({ requests }) => requests),
    errors: sum(({ failed_requests: failed }) => failed),
    tokens: input + sum(({ output_tokens: output }) => output),
    cost: sum(({ cost }) => Number(cost)),
    cached: input > 0 ? sum(({ cached_tokens: cached }) => cached) / input : undefined,
    duration:
      measured > 0
        ? sum(({ duration_ms: one }) => (one === null ? 0 : one.mean * one.count)) / measured
        : undefined,
  };
}

const inputOf = (row: Activity): number =>
  row.input_tokens + row.cached_tokens + row.cache_written_tokens;

function mostUsed(rows: readonly Activity[], nameOf: (row: Activity) => string): string[] {
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(nameOf(row), (totals.get(nameOf(row)) ?? 0) + row.requests);
  const names = [...totals.keys()].sort((a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0));
  return names.slice(0, MAX_LINES);
}

function divided(line: Line, by: Line | undefined): Line {
  const values = line.values.map((value, index) => {
    const whole = by?.values[index] ?? 0;
    return value === null || whole === 0 ? null : value / whole;
  });
  return { name: line.name, values };
}

function add(line: Line | undefined, index: number, value: number): void {
  if (line === undefined || !(index in line.values)) return;
  line.values[index] = (line.values[index] ?? 0) + value;
}
