// Spend of the month, and limits with what is left of them.
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { LimitBars, type NamedLimit } from "../../parts/limit_bars";
import { useLoaded } from "../../parts/loading";
import { Tiles } from "../../parts/tiles";
import { money } from "../../parts/formats";
import { words } from "../../words/common";
import { overviewWords } from "../../words/overview";
import type { Scope } from "../../admin/scope";
import { getSpending } from "./activity";

// Bars that are shown, of those that are the most used.
const SHOWN = 8;
const text = overviewWords;

export function SpendingView({ scope }: { scope: Scope }) {
  const { data, error } = useLoaded((signal) => getSpending(scope, Date.now(), signal), [scope]);
  const limits = data === undefined ? [] : byUse(data.limits);
  return (
    <section aria-labelledby="spending">
      <h2 id="spending">{text.spending}</h2>
      <Failure error={error} />
      {data !== undefined && (
        <>
          <Tiles
            label={text.spending}
            tiles={[
              { name: text.spent, value: money(data.month.spent) },
              {
                name: text.forecast,
                value: data.month.forecast === undefined ? "–" : money(data.month.forecast),
                hint: text.forecastHint,
              },
            ]}
          />
          {limits.length === 0 ? (
            <Empty title={text.noLimits[scope]}>
              <p>
                {scope === "everyone" ? (
                  <a href="/console/people?tab=teams">{text.setLimits}</a>
                ) : (
                  text.askForLimits
                )}
              </p>
            </Empty>
          ) : (
            <LimitBars label={text.limits} limits={limits.slice(0, SHOWN)} />
          )}
          {limits.length > SHOWN && <p class="hint">{text.moreLimits(limits.length - SHOWN)}</p>}
          {data.allowed.map((allowed) => (
            <p key={allowed.subject_kind}>
              {text.allowed(words.limits.kinds[allowed.subject_kind])}{" "}
              {allowed.models.join(", ") || text.noModels}
            </p>
          ))}
        </>
      )}
    </section>
  );
}

/** Return limits, those first that are the most used. */
function byUse(limits: readonly NamedLimit[]): NamedLimit[] {
  const part = ({ limit, used, reserved }: NamedLimit): number =>
    Number(limit) > 0 ? (Number(used) + Number(reserved)) / Number(limit) : 1;
  return [...limits].sort((a, b) => part(b) - part(a));
}
