import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { LimitStates, amount, number } from "../../parts/limit_states";
import { useLoaded } from "../../parts/loading";
import { useTitle } from "../../parts/title";
import { type Period, getUsage } from "./usage";

export default function Usage() {
  useTitle("Usage");
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
              <LimitStates limits={data.limits} />
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
