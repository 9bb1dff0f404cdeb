// The limits of a subject: a key, a user, a team, a tag, an end user.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { LimitStates } from "../../parts/limit_states";
import { useLoaded } from "../../parts/loading";
import { BudgetActions } from "./budget_actions";
import { type Limits, getLimits, removeLimits, setLimits } from "../../admin/calls";

const COUNTS = [
  ["requests_per_minute", "Requests a minute"],
  ["tokens_per_minute", "Tokens a minute"],
  ["concurrent_requests", "Requests at once"],
] as const;
const AMOUNTS = [
  ["spend_per_day", "Dollars a day"],
  ["spend_per_week", "Dollars a week"],
  ["spend_per_month", "Dollars a month"],
  ["spend_per_period", "Dollars a period"],
] as const;
const PERIOD = [
  ["period_start", "Period since (UTC)", "today"],
  ["period_days", "Days of a period", "no end"],
  ["soft_limit_percent", "Percent of a budget to notify at", "never"],
] as const;

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
      <form class="limits" aria-label="Limits" onSubmit={submit} onInput={() => setSaved(false)}>
        {COUNTS.map(([name, label]) => (
          <label key={name}>
            {label}
            <input name={name} inputMode="numeric" value={data[name] ?? ""} placeholder="no limit" />
          </label>
        ))}
        {AMOUNTS.map(([name, label]) => (
          <label key={name}>
            {label}
            <input
              name={name}
              inputMode="decimal"
              value={withCents(data[name] ?? "")}
              placeholder="no limit"
            />
          </label>
        ))}
        {PERIOD.map(([name, label, absent]) => (
          <label key={name}>
            {label}
            <input name={name} value={data[name] ?? ""} placeholder={absent} />
          </label>
        ))}
        <label>
          Models, one a line; * at the end stands for any rest
          <textarea
            name="allowed_models"
            rows={3}
            placeholder="all"
            value={data.allowed_models?.join("\n") ?? ""}
          />
        </label>
        <label>
          Model groups, one a line
          <textarea
            name="allowed_model_groups"
            rows={2}
            placeholder="none"
            value={data.allowed_model_groups.join("\n")}
          />
        </label>
        <button>Save limits</button>
        <ConfirmButton
          label="Remove limits"
          question="Remove all of these limits?"
          onConfirm={remove}
        />
        <Failure error={failure ?? error} />
        <p role="status">{isSaved && "Saved. Limits count everywhere within 30 seconds."}</p>
      </form>
    </>
  );
}

/** Return decimal dollars with two decimals at least. */
const withCents = (dollars: string): string =>
  /^\d+(\.\d)?$/.test(dollars) ? Number(dollars).toFixed(2) : dollars;

/** Return what the form says; what is not a number goes as it is, and the gateway says what it takes. */
function read(form: FormData): Partial<Limits> {
  const text = (name: string): string => String(form.get(name) ?? "").trim();
  const limits: Record<string, unknown> = {};
  for (const name of [...COUNTS.map(([count]) => count), "period_days", "soft_limit_percent"]) {
    const value = text(name);
    if (value) limits[name] = /^\d+$/.test(value) ? Number(value) : value;
  }
  for (const name of [...AMOUNTS.map(([amount]) => amount), "period_start"])
    if (text(name)) limits[name] = text(name);
  for (const name of ["allowed_models", "allowed_model_groups"]) {
    const lines = text(name).split("\n").map((line) => line.trim()).filter(Boolean);
    if (lines.length > 0) limits[name] = lines;
  }
  return limits as Partial<Limits>;
}
