import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { type LimitUsage, type Period, getUsage } from "./usage";

const NAMES: Record<string, string> = {
  requests_per_minute: "Requests a minute",
  tokens_per_minute: "Tokens a minute",
  concurrent_requests: "Requests at once",
  spend_per_day: "Dollars a day",
  spend_per_week: "Dollars a week",
  spend_per_month: "Dollars a month",
  spend_per_period: "Dollars a period",
};
const number = new Intl.NumberFormat();

/** Return an amount: dollars are text. */
const amount = (value: number | string): string =>
  typeof value === "string" ? `$${value}` : number.format(value);

export default function Usage() {
  const { data, error, reload } = useLoaded(getUsage, []);
  return (
    <>
      <h1>Usage</h1>
      <p class="actions">
        <button type="button" class="quiet" onClick={reload}>
          Refresh
        </button>
      </p>
      <Failure error={error} />
      {data !== undefined && (
        <>
          <section aria-labelledby="limits">
            <h2 id="limits">Limits</h2>
            {data.limits.length === 0 ? (
              <Empty title="Nothing is limited">
                <p>Neither your key nor your user or team has a limit on numbers.</p>
              </Empty>
            ) : (
              <Limits limits={data.limits} />
            )}
            {data.allowed_models.map((allowed) => (
              <p key={allowed.subject_kind}>
                Models of the {allowed.subject_kind}: {allowed.models.join(", ") || "none"}
              </p>
            ))}
          </section>
          <section aria-labelledby="used">
            <h2 id="used">Used by all your keys</h2>
            <Used periods={[data.usage.day, data.usage.month]} />
          </section>
        </>
      )}
    </>
  );
}

function Limits({ limits }: { limits: LimitUsage[] }) {
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
            <th>Starts again</th>
          </tr>
        </thead>
        <tbody>
          {limits.map((one) => (
            <tr key={`${one.subject_kind}/${one.name}`}>
              <td>
                {NAMES[one.name] ?? one.name}: {amount(one.limit)}
              </td>
              <td>{one.subject_kind}</td>
              <td>{amount(one.used)}</td>
              <td>{amount(one.reserved)}</td>
              <td>{amount(one.remaining)}</td>
              <td>{one.resets_at === null ? "" : when(one.resets_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Used({ periods }: { periods: Period[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Used">
      <table>
        <thead>
          <tr>
            <th>Day or month (UTC)</th>
            <th>Requests</th>
            <th>Input tokens</th>
            <th>Output tokens</th>
            <th>Estimated</th>
            <th>Cost</th>
          </tr>
        </thead>
        <tbody>
          {periods.map((one) => (
            <tr key={one.period}>
              <td>{one.period}</td>
              <td>{number.format(one.requests)}</td>
              <td>{number.format(one.input_tokens)}</td>
              <td>{number.format(one.output_tokens)}</td>
              <td>{number.format(one.estimated)}</td>
              <td>{amount(one.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
