// A table of limits: what is used, reserved and left of each.
import { dollars, when } from "./formats";

export interface LimitUsage {
  subject_kind: "key" | "user" | "team" | "tag" | "end_user";
  name: string;
  /** A number, or decimal US dollars as text. */
  limit: number | string;
  used: number | string;
  reserved: number | string;
  remaining: number | string;
  /** RFC 3339; null for concurrent requests. */
  resets_at: string | null;
  starts_at: string | null;
  /** Of a budget, dollars at the end of its period at the present pace. */
  forecast: string | null;
  exhausted_at: string | null;
  soft_limit_percent: number | null;
  soft_limit_reached: boolean | null;
}

/** What limits are called. */
export const LIMIT_NAMES: Readonly<Record<string, string>> = {
  requests_per_minute: "Requests a minute",
  tokens_per_minute: "Tokens a minute",
  concurrent_requests: "Requests at once",
  spend_per_day: "Dollars a day",
  spend_per_week: "Dollars a week",
  spend_per_month: "Dollars a month",
  spend_per_period: "Dollars a period",
};
export const number = new Intl.NumberFormat();

/** Return an amount: dollars are text. */
export const amount = (value: number | string): string =>
  typeof value === "string" ? dollars(value) : number.format(value);

/** Return how a budget will be used up at the present pace. */
function forecast(one: LimitUsage): string {
  const parts = [
    one.forecast !== null && dollars(Number(one.forecast).toFixed(2)),
    one.exhausted_at !== null && `used up ${when(one.exhausted_at)}`,
    one.soft_limit_reached && `${one.soft_limit_percent}% reached`,
  ];
  return parts.filter(Boolean).join(", ");
}

export function LimitStates({ limits }: { limits: LimitUsage[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Limits">
      <table>
        <thead>
          <tr>
            <th>Limit</th>
            <th>Of</th>
            <th>Used</th>
            <th>Reserved</th>
            <th>Left</th>
            <th>Since</th>
            <th>Starts again</th>
            <th>Forecast</th>
          </tr>
        </thead>
        <tbody>
          {limits.map((one) => (
            <tr key={`${one.subject_kind}/${one.name}`}>
              <td>
                {LIMIT_NAMES[one.name] ?? one.name}: {amount(one.limit)}
              </td>
              <td>{one.subject_kind.replace("_", " ")}</td>
              <td>{amount(one.used)}</td>
              <td>{amount(one.reserved)}</td>
              <td>{amount(one.remaining)}</td>
              <td>{one.starts_at === null ? "" : when(one.starts_at)}</td>
              <td>{one.resets_at === null ? "" : when(one.resets_at)}</td>
              <td>{forecast(one)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

