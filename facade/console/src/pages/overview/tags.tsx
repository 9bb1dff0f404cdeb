// Usage of the last 30 days by the values of a tag.
import { useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { amount, number } from "../../parts/limit_states";
import { useLoaded } from "../../parts/loading";
import { getUsageByTag } from "../../admin/calls";

const DAYS = 30;
const DAY_MS = 86_400_000;

export function Tags() {
  const [written, setWritten] = useState("");
  const [tag, setTag] = useState("");
  const { data, error } = useLoaded(
    async (signal) => {
      if (tag === "") return undefined;
      const since = new Date(Date.now() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
      return await getUsageByTag(tag, since, signal);
    },
    [tag],
  );
  return (
    <section aria-labelledby="tags">
      <h2 id="tags">Usage by tag</h2>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          setTag(written.trim());
        }}
      >
        <label>
          Key of the tag
          <input
            value={written}
            onInput={(event) => setWritten(event.currentTarget.value)}
            placeholder="project"
          />
        </label>
        <button type="submit">Show</button>
      </form>
      <Failure error={error} />
      {data?.length === 0 && (
        <Empty title="No requests with this tag">
          <p>
            None of the last {DAYS} days. The setting <code>usage.tags</code> has the keys that are
            counted.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Usage by tag">
          <table>
            <thead>
              <tr>
                <th>{tag}</th>
                <th>Requests</th>
                <th>Input tokens</th>
                <th>Output tokens</th>
                <th>Cost</th>
              </tr>
            </thead>
            <tbody>
              {data.map((one) => (
                <tr key={one.id}>
                  <td>{one.id}</td>
                  <td>{number.format(one.requests)}</td>
                  <td>{number.format(one.input_tokens)}</td>
                  <td>{number.format(one.output_tokens)}</td>
                  <td>{amount(one.cost)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
