// Usage of the last 30 days by the values of a tag.
import { useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { exact } from "../../parts/formats";
import { amount } from "../../parts/limit_states";
import { useLoaded } from "../../parts/loading";
import { overviewWords } from "../../words/overview";
import { getUsageByTag } from "../../admin/calls";

const text = overviewWords.tags;

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
      <h2 id="tags">{text.title}</h2>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          setTag(written.trim());
        }}
      >
        <label>
          {text.key}
          <input
            value={written}
            onInput={(event) => setWritten(event.currentTarget.value)}
            placeholder={text.example}
          />
        </label>
        <button type="submit">{text.show}</button>
      </form>
      <Failure error={error} />
      {data?.length === 0 && (
        <Empty title={text.none}>
          <p>
            {text.noneHint(DAYS)[0]}
            <code>usage.tags</code>
            {text.noneHint(DAYS)[1]}
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={text.title}>
          <table>
            <thead>
              <tr>
                <th>{tag}</th>
                {text.columns.map((column) => (
                  <th key={column}>{column}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {data.map((one) => (
                <tr key={one.id}>
                  <td>{one.id}</td>
                  <td>{exact(one.requests)}</td>
                  <td>{exact(one.input_tokens)}</td>
                  <td>{exact(one.output_tokens)}</td>
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
