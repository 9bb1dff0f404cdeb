// Activity as lines of a chart: one for each model or user that used most, one for all others.
import type { Activity } from "./admin";

export interface Line {
  name: string;
  /** A value for each time; null where there is none. */
  values: (number | null)[];
}

export interface Series {
  /** Unix seconds, ascending, without gaps. */
  times: number[];
  requests: Line[];
  /** Dollars. */
  cost: Line[];
  /** The 95th percentile of the duration, in milliseconds; without a line for all others. */
  duration: Line[];
}

const MAX_LINES = 6;
const OTHERS = "all others";

/** Return the lines of a period; hours or days without requests are zeros. */
export function toSeries(
  rows: readonly Activity[],
  { since, until, stepS }: { since: number; until: number; stepS: number },
): Series {
  const first = Math.floor(since / stepS) * stepS;
  const times: number[] = [];
  for (let time = first; time < until; time += stepS) times.push(time);
  const totals = new Map<string, number>();
  for (const row of rows) {
    totals.set(nameOf(row), (totals.get(nameOf(row)) ?? 0) + row.requests);
  }
  const names = [...totals.keys()].sort((a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0));
  const shown = names.slice(0, MAX_LINES);
  const all = names.length > MAX_LINES ? [...shown, OTHERS] : shown;
  const lines = (empty: number | null): Map<string, Line> =>
    new Map(all.map((name) => [name, { name, values: times.map(() => empty) }]));
  const requests = lines(0);
  const cost = lines(0);
  const duration = lines(null);
  for (const row of rows) {
    const index = (Date.parse(row.id) / 1000 - first) / stepS;
    const name = shown.includes(nameOf(row)) ? nameOf(row) : OTHERS;
    add(requests.get(name), index, row.requests);
    add(cost.get(name), index, Number(row.cost));
    const p95 = row.duration_ms?.p95;
    if (p95 !== undefined && name !== OTHERS) add(duration.get(name), index, p95);
  }
  duration.delete(OTHERS);
  return { times, requests: [...requests.values()], cost: [...cost.values()], duration: [...duration.values()] };
}

function nameOf(row: Activity): string {
  return row.split_name || row.split_id || "none";
}

function add(line: Line | undefined, index: number, value: number): void {
  if (line === undefined || index < 0 || index >= line.values.length) return;
  line.values[index] = (line.values[index] ?? 0) + value;
}
