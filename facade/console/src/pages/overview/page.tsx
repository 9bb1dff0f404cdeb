// Spend, budgets and activity: one's own, or everyone's for administrators.
import { useLocation } from "preact-iso";
import { useMemo, useState } from "preact/hooks";

import { Chart } from "../../parts/chart";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { Segments } from "../../parts/segments";
import { Tiles } from "../../parts/tiles";
import { useTitle } from "../../parts/title";
import { count, duration, money, share } from "../../parts/formats";
import { words } from "../../words/common";
import { overviewWords } from "../../words/overview";
import type { Scope } from "../../admin/scope";
import { administersAll, mayAdministerAll } from "../../shell/session";
import { AdminSignIn } from "../../admin/sign_in";
import { type Split, getActivity } from "./activity";
import { PERCENTILES, type Percentile, toSeries, totalsOf } from "./series";
import { SpendingView } from "./spending";
import { Tags } from "./tags";

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
const PERIODS = {
  day: { lengthS: DAY_S, by: "hour", stepS: HOUR_S },
  week: { lengthS: 7 * DAY_S, by: "hour", stepS: HOUR_S },
  month: { lengthS: 30 * DAY_S, by: "day", stepS: DAY_S },
} as const;
type PeriodName = keyof typeof PERIODS;
const SPLITS: Record<Scope, readonly Split[]> = {
  mine: ["model", "key", "provider"],
  everyone: ["model", "user", "team", "key", "provider"],
};
const text = overviewWords;

export default function Overview() {
  useTitle(text.title);
  const { query, path, route } = useLocation();
  const scope: Scope = query["scope"] === "everyone" ? "everyone" : "mine";
  return (
    <>
      <div class="page-head">
        <h1>{text.title}</h1>
        {mayAdministerAll.value && (
          <Segments
            label={words.scope.label}
            choices={words.scope.choices}
            value={scope}
            onChange={(now) => route(now === "mine" ? path : `${path}?scope=${now}`)}
          />
        )}
      </div>
      {scope === "everyone" && !administersAll.value ? (
        <AdminSignIn />
      ) : (
        <>
          <SpendingView key={`spending/${scope}`} scope={scope} />
          <ActivityView key={`activity/${scope}`} scope={scope} />
          {scope === "everyone" && <Tags />}
        </>
      )}
    </>
  );
}

function ActivityView({ scope }: { scope: Scope }) {
  const [period, setPeriod] = useState<PeriodName>("day");
  const [split, setSplit] = useState<Split>("model");
  const [percentile, setPercentile] = useState<Percentile>("p95");
  const { data, error, isLoading, reload } = useLoaded(
    async (signal) => {
      const { lengthS, by, stepS } = PERIODS[period];
      const until = Math.floor(Date.now() / 1000);
      // From the beginning of an hour or a day, so that the first figure is of a whole one.
      const since = Math.ceil((until - lengthS) / stepS) * stepS;
      return { rows: await getActivity(scope, { since, by, split }, signal), since, until, stepS };
    },
    [period, split],
  );
  const series = useMemo(
    () => data && toSeries(data.rows, data, percentile, text.lines),
    [data, percentile],
  );
  return (
    <section aria-labelledby="activity">
      <h2 id="activity">{text.activity}</h2>
      <div class="actions">
        <Segments label={text.period} choices={text.periods} value={period} onChange={setPeriod} />
        <label class="inline">
          {text.by}
          <select value={split} onChange={(event) => setSplit(event.currentTarget.value as Split)}>
            {SPLITS[scope].map((one) => (
              <option key={one} value={one}>
                {text.splits[one]}
              </option>
            ))}
          </select>
        </label>
        <label class="inline">
          {text.latency}
          <select
            value={percentile}
            onChange={(event) => setPercentile(event.currentTarget.value as Percentile)}
          >
            {PERCENTILES.map((one) => (
              <option key={one} value={one}>
                {text.percentiles[one]}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="quiet" onClick={reload}>
          {words.refresh}
        </button>
      </div>
      <Failure error={error} />
      {data === undefined && isLoading && <p class="hint">{words.loading}</p>}
      {data?.rows.length === 0 && (
        <Empty title={text.none}>
          <p>
            {text.noneHint[0]} <a href="/console">{text.noneHint[1]}</a>
            {text.noneHint[2]}
          </p>
        </Empty>
      )}
      {series !== undefined && data !== undefined && data.rows.length > 0 && (
        <>
          <Tiles label={text.activity} tiles={tilesOf(totalsOf(data.rows))} />
          <div class="charts">
            {[
              { title: text.charts.requests, lines: series.requests, format: count },
              { title: text.charts.errors, lines: series.errors, format: count },
              { title: text.charts.duration(text.percentiles[percentile]), lines: series.duration, format: duration },
              { title: text.charts.first(text.percentiles[percentile]), lines: series.first, format: duration },
              { title: text.charts.tokens, lines: series.tokens, format: count },
              { title: text.charts.cached, lines: series.cached, format: share },
              { title: text.charts.cost, lines: series.cost, format: money },
            ]
              .filter(({ lines }) => lines.length > 0)
              .map((chart) => (
                <Chart key={chart.title} times={series.times} stepS={data.stepS} {...chart} />
              ))}
          </div>
        </>
      )}
    </section>
  );
}

function tilesOf(totals: ReturnType<typeof totalsOf>) {
  const { requests, errors, tokens, cost, cached, duration: mean } = totals;
  return [
    { name: text.charts.requests, value: count(requests) },
    {
      name: text.charts.errors,
      value: count(errors),
      hint: requests > 0 ? share(errors / requests) : "",
    },
    { name: text.mean, value: mean === undefined ? "–" : duration(mean) },
    { name: text.charts.tokens, value: count(tokens) },
    { name: text.charts.cached, value: cached === undefined ? "–" : share(cached) },
    { name: text.charts.cost, value: money(cost) },
  ];
}
