// Limits as bars: what is used, what is left, and where a budget will be at the present pace.
import { limitName, type LimitUsage } from "./limit_states";
import { count, money, share, when } from "./formats";
import { words } from "../words/common";

export interface NamedLimit extends LimitUsage {
  /** Whom it limits, where that is not said elsewhere. */
  subject?: string;
}

export function LimitBars({ limits, label }: { limits: readonly NamedLimit[]; label: string }) {
  return (
    <ul class="bars" aria-label={label}>
      {limits.map((one) => (
        <li key={`${one.subject_kind}/${one.subject ?? ""}/${one.name}`}>
          <Bar limit={one} />
        </li>
      ))}
    </ul>
  );
}

function Bar({ limit }: { limit: NamedLimit }) {
  const whole = Number(limit.limit);
  const used = Number(limit.used) + Number(limit.reserved);
  const part = whole > 0 ? used / whole : 1;
  const expected = limit.forecast === null || whole === 0 ? undefined : Number(limit.forecast) / whole;
  const shown = typeof limit.limit === "string" ? money : count;
  const tone = part >= 1 ? "bad" : part >= 0.8 || limit.soft_limit_reached ? "warning" : "good";
  const name = limitName(limit.name);
  const title = limit.subject === undefined ? name : `${limit.subject} · ${name}`;
  return (
    <>
      <p class="head">
        <span>{title}</span>
        <span>
          {shown(used)} {words.limits.of} {shown(whole)}
          <span class="hint"> ({share(part)})</span>
        </span>
      </p>
      <div class={`meter ${tone}`} role="img" aria-label={`${title}: ${share(part)}`}>
        <span style={{ width: `${100 * Math.min(1, part)}%` }} />
        {expected !== undefined && expected > part && expected <= 1 && (
          <i style={{ left: `${100 * expected}%` }} />
        )}
      </div>
      <p class="hint">{notes(limit, shown).join(" · ")}</p>
    </>
  );
}

function notes(limit: LimitUsage, shown: (value: number) => string): string[] {
  const { limits } = words;
  return [
    limits.left(shown(Number(limit.remaining))),
    limit.forecast === null ? "" : limits.forecast(money(Number(limit.forecast))),
    limit.exhausted_at === null ? "" : limits.exhausted(when(limit.exhausted_at)),
    limit.resets_at === null ? "" : limits.resets(when(limit.resets_at)),
  ].filter(Boolean);
}
