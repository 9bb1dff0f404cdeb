// The limits of a subject: a key, a user, a team, a tag, an end user.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { LimitStates, limitName } from "../../parts/limit_states";
import { useLoaded } from "../../parts/loading";
import { words } from "../../words/common";
import { peopleWords } from "../../words/people";
import { BudgetActions } from "./budget_actions";
import { type Limits, getLimits, removeLimits, setLimits } from "../../admin/calls";

const text = peopleWords.limits;
const COUNTS = ["requests_per_minute", "tokens_per_minute", "concurrent_requests"] as const;
const AMOUNTS = ["spend_per_day", "spend_per_week", "spend_per_month", "spend_per_period"] as const;
const PERIOD = ["period_start", "period_days", "soft_limit_percent"] as const;

/** The form of the limits at a path, such as `keys/{key_id}/limits`. */
export function LimitsForm({ path }: { path: string }) {
  const { data, error, reload } = useLoaded((signal) => getLimits(path, signal), [path]);
  const [failure, setFailure] = useState<unknown>();
  const [isSaved, setSaved] = useState(false);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    setFailure(undefined);
    setSaved(false);
    try {
      await setLimits(path, read(new FormData(event.currentTarget as HTMLFormElement)));
      setSaved(true);
      reload();
    } catch (refused) {
      setFailure(refused);
    }
  }

  async function remove(): Promise<void> {
    await removeLimits(path);
    setFailure(undefined);
    setSaved(false);
    reload();
  }

  if (data === undefined) return <Failure error={error} />;
  return (
    <>
      {data.usage !== undefined && data.usage.length > 0 && <LimitStates limits={data.usage} />}
      <BudgetActions path={path} limits={data.usage ?? []} onChanged={reload} />
      <form class="limits" aria-label={words.limits.title} onSubmit={submit} onInput={() => setSaved(false)}>
        {COUNTS.map((name) => (
          <label key={name}>
            {limitName(name)}
            <input name={name} inputMode="numeric" value={data[name] ?? ""} placeholder={text.noLimit} />
          </label>
        ))}
        {AMOUNTS.map((name) => (
          <label key={name}>
            {limitName(name)}
            <input
              name={name}
              inputMode="decimal"
              value={withCents(data[name] ?? "")}
              placeholder={text.noLimit}
            />
          </label>
        ))}
        {PERIOD.map((name) => (
          <label key={name}>
            {text.period[name][0]}
            <input name={name} value={data[name] ?? ""} placeholder={text.period[name][1]} />
          </label>
        ))}
        <label>
          {text.models}
          <textarea
            name="allowed_models"
            rows={3}
            placeholder={text.allModels}
            value={data.allowed_models?.join("\n") ?? ""}
          />
        </label>
        <label>
          {text.groups}
          <textarea
            name="allowed_model_groups"
            rows={2}
            placeholder={text.noGroups}
            value={data.allowed_model_groups.join("\n")}
          />
        </label>
        <button>{text.save}</button>
        <ConfirmButton
          label={text.remove}
          question={text.removeQuestion}
          onConfirm={remove}
        />
        <Failure error={failure ?? error} />
        <p role="status">{isSaved && text.saved}</p>
      </form>
    </>
  );
}

/** Return decimal dollars with two decimals at least. */
const withCents = (dollars: string): string =>
  /^\d+(\.\d)?$/.test(dollars) ? Number(dollars).toFixed(2) : dollars;

/** Return what the form says; what is not a number goes as it is, and the gateway says what it takes. */
function read(form: FormData): Partial<Limits> {
  const entered = (name: string): string => String(form.get(name) ?? "").trim();
  const limits: Record<string, unknown> = {};
  for (const name of [...COUNTS, "period_days", "soft_limit_percent"]) {
    const value = entered(name);
    if (value) limits[name] = /^\d+$/.test(value) ? Number(value) : value;
  }
  for (const name of [...AMOUNTS, "period_start"])
    if (entered(name)) limits[name] = entered(name);
  for (const name of ["allowed_models", "allowed_model_groups"]) {
    const lines = entered(name).split("\n").map((line) => line.trim()).filter(Boolean);
    if (lines.length > 0) limits[name] = lines;
  }
  return limits as Partial<Limits>;
}
