// Requests, latency and spend over time, by model or user.
import { useMemo, useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { type Split, getActivity } from "./admin";
import { Chart } from "./chart";
import { toSeries } from "./series";

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
const PERIODS = {
  "24 hours": { lengthS: DAY_S, by: "hour", stepS: HOUR_S },
  "7 days": { lengthS: 7 * DAY_S, by: "hour", stepS: HOUR_S },
  "30 days": { lengthS: 30 * DAY_S, by: "day", stepS: DAY_S },
} as const;
type Period = keyof typeof PERIODS;

const count = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const money = new Intl.NumberFormat(undefined, {
  style: "currency",
  currency: "USD",
  maximumFractionDigits: 4,
});

export function ActivityCharts() {
  const [period, setPeriod] = useState<Period>("24 hours");
  const [split, setSplit] = useState<Split>("model");
  const { data, error, reload } = useLoaded(
    async (signal) => {
      const { lengthS, by, stepS } = PERIODS[period];
      const until = Math.floor(Date.now() / 1000);
      // From the beginning of an hour or a day, so that the first figure is of a whole one.
      const since = Math.ceil((until - lengthS) / stepS) * stepS;
      return { rows: await getActivity({ since, by, split }, signal), since, until, stepS };
    },
    [period, split],
  );
  const series = useMemo(() => data && toSeries(data.rows, data), [data]);
  return (
    <section aria-labelledby="activity">
      <h2 id="activity">Activity</h2>
      <div class="actions">
        <label>
          Period
          <select
            value={period}
            onChange={(event) => setPeriod(event.currentTarget.value as Period)}
          >
            {Object.keys(PERIODS).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          By
          <select value={split} onChange={(event) => setSplit(event.currentTarget.value as Split)}>
            <option>model</option>
            <option>user</option>
          </select>
        </label>
        <button type="button" class="quiet" onClick={reload}>
          Refresh
        </button>
      </div>
      <Failure error={error} />
      {data?.rows.length === 0 && (
        <Empty title="There were no requests in this time">
          <p>
            Send one in the <a href="/console">playground</a>; it appears here within seconds.
          </p>
        </Empty>
      )}
      {series !== undefined && data !== undefined && data.rows.length > 0 && (
        <>
          <Chart
            title="Requests"
            times={series.times}
            lines={series.requests}
            format={(value) => count.format(value)}
          />
          <Chart
            title="Duration, 95th percentile"
            times={series.times}
            lines={series.duration}
            format={(value) => `${count.format(value)} ms`}
          />
          <Chart
            title="Spend"
            times={series.times}
            lines={series.cost}
            format={(value) => money.format(value)}
          />
        </>
      )}
    </section>
  );
}
