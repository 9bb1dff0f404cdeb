// The filters of the log. They are in the address, so that a search can be linked to.
import { useLocation } from "preact-iso";

import { requestsWords } from "../../words/requests";
import type { Scope } from "../../admin/scope";
import type { RequestFilter } from "./log";

const { filters } = requestsWords;
const FIELDS = ["text", "model", "provider", "request_id", "tag", "end_user", "min_cost", "max_cost"] as const;
const IDS = ["user_id", "key_id"] as const;
const STATUSES = ["2xx", "4xx", "429", "499", "5xx"] as const;
const SPANS = { hour: 3600, day: 86_400, week: 604_800 } as const;
// Beside those of the API: how long ago.
const SINCE = "span";
// Requests of the console itself, for example, name no model: they are shown where one asks for them.
const ALL = "all";
const NAMES = [...FIELDS, ...IDS, "status", SINCE, ALL] as const;

/** Return what the address filters by, without what is empty. */
export function useFilters(): { values: Readonly<Record<string, string>>; isFiltered: boolean } {
  const { query } = useLocation();
  const pairs = NAMES.map((name) => [name, query[name] ?? ""] as const);
  const values = Object.fromEntries(pairs.filter(([, value]) => value !== ""));
  return { values, isFiltered: Object.keys(values).length > 0 };
}

/** Return the query of the API for filters. */
export function toQuery(values: Readonly<Record<string, string>>, now: number): RequestFilter {
  const { [SINCE]: span, [ALL]: all, ...rest } = values;
  const length = SPANS[span as keyof typeof SPANS];
  return {
    ...rest,
    ...(all === undefined ? { has_model: "true" } : {}),
    ...(length === undefined ? {} : { since: String(Math.floor(now / 1000) - length) }),
  };
}

export function Filters({
  scope,
  users,
}: {
  scope: Scope;
  /** Names of users by their ids. */
  users: ReadonlyMap<string, string>;
}) {
  const { values, isFiltered } = useFilters();
  const { path, query, route } = useLocation();

  function apply(form: HTMLFormElement): void {
    const data = new FormData(form);
    const entered = NAMES.map((name) => [name, String(data.get(name) ?? "").trim()] as const);
    show(Object.fromEntries(entered.filter(([, value]) => value !== "")));
  }

  function show(now: Record<string, string>): void {
    const shown = new URLSearchParams(now);
    if (query["scope"]) shown.set("scope", query["scope"]);
    route(shown.size > 0 ? `${path}?${shown}` : path);
  }

  // Made anew where the address has changed.
  return (
    <form
      key={JSON.stringify(values)}
      class="filters"
      aria-label={filters.title}
      onSubmit={(event) => {
        event.preventDefault();
        apply(event.currentTarget as HTMLFormElement);
      }}
    >
      <label class="wide">
        {filters.text}
        <input type="search" name="text" autocomplete="off" defaultValue={values["text"] ?? ""} />
      </label>
      <label>
        {filters.model}
        <input name="model" autocomplete="off" defaultValue={values["model"] ?? ""} />
      </label>
      <Select name="status" choices={Object.fromEntries(STATUSES.map((one) => [one, filters.statuses[one]]))} value={values["status"] ?? ""} />
      <Select name={SINCE} choices={filters.spans} value={values[SINCE] ?? ""} />
      {scope === "everyone" && (
        <Select name="user_id" choices={Object.fromEntries(users)} value={values["user_id"] ?? ""} />
      )}
      <label class="check">
        <input
          type="checkbox"
          name={ALL}
          checked={values[ALL] !== undefined}
          onChange={(event) => event.currentTarget.form?.requestSubmit()}
        />
        {filters.all}
      </label>
      <details class="more" open={["provider", "key_id", "request_id", "tag", "end_user", "min_cost", "max_cost"].some((name) => values[name])}>
        <summary>{filters.more}</summary>
        <div class="filters">
          {(["provider", "key_id", "request_id", "tag", "end_user", "min_cost", "max_cost"] as const).map((name) => (
            <label key={name}>
              {filters[name]}
              <input
                name={name}
                autocomplete="off"
                inputMode={name.endsWith("cost") ? "decimal" : "text"}
                placeholder={name === "tag" ? filters.tagExample : undefined}
                defaultValue={values[name] ?? ""}
              />
            </label>
          ))}
        </div>
      </details>
      <div class="actions">
        <button>{filters.search}</button>
        {isFiltered && (
          <button type="button" class="quiet" onClick={() => show({})}>
            {filters.clear}
          </button>
        )}
      </div>
    </form>
  );
}

/** A choice that is applied at once. */
function Select({
  name,
  choices,
  value,
}: {
  name: "status" | "span" | "user_id";
  choices: Readonly<Record<string, string>>;
  value: string;
}) {
  const isOther = value !== "" && !(value in choices);
  return (
    <label>
      {filters[name]}
      <select
        name={name}
        value={value}
        onChange={(event) => event.currentTarget.form?.requestSubmit()}
      >
        <option value="">{filters.any}</option>
        {isOther && <option>{value}</option>}
        {Object.entries(choices).map(([one, label]) => (
          <option key={one} value={one}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}
