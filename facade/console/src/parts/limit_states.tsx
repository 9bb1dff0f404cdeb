// A table of limits: what is used, reserved and left of each.
import { words } from "../words/common";
import { exact, money, price, share, when } from "./formats";

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

const { limits: text } = words;

/** Return what a limit is called. */
export const limitName = (name: string): string =>
  (text.names as Readonly<Record<string, string>>)[name] ?? name;

/** Return an amount: dollars are text. */
export const amount = (value: number | string): string =>
  typeof value === "string" ? price(value) : exact(value);

/** Return how a budget will be used up at the present pace. */
function forecast(one: LimitUsage): string {
  const parts = [
    one.forecast !== null && money(Number(one.forecast)),
    one.exhausted_at !== null && text.usedUp(when(one.exhausted_at)),
    one.soft_limit_reached && text.reached(share((one.soft_limit_percent ?? 0) / 100)),
  ];
  return parts.filter(Boolean).join(", ");
}

export function LimitStates({ limits }: { limits: LimitUsage[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={text.title}>
      <table>
        <thead>
          <tr>
            {text.columns.map((column) => (
              <th key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {limits.map((one) => (
            <tr key={`${one.subject_kind}/${one.name}`}>
              <td>
                {limitName(one.name)}: {amount(one.limit)}
              </td>
              <td>{text.kinds[one.subject_kind]}</td>
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

