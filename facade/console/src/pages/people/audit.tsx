// The log of changes by administrators.
import { useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { money, when } from "../../parts/formats";
import { Pager, usePages } from "../../parts/pager";
import { words } from "../../words/common";
import { peopleWords } from "../../words/people";
import { type AuditEntry, listAudit } from "./accounts";

const text = peopleWords.audit;
const KINDS = ["key", "user", "team", "tag", "end_user", "admin_key", "model_group", "provider", "invitation", "session"] as const;

export function Audit() {
  const [kind, setKind] = useState("");
  const pages = usePages((cursor, signal) => listAudit(kind, cursor, signal), [kind]);
  return (
    <>
      <div class="actions">
        <label class="inline">
          {text.of}
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="">{text.everything}</option>
            {KINDS.map((one) => (
              <option key={one} value={one}>
                {text.kinds[one]}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="quiet" onClick={pages.reload}>
          {words.refresh}
        </button>
      </div>
      <Failure error={pages.error} />
      {pages.isLoaded && pages.items.length === 0 && (
        <Empty title={text.none}>
          <p>{text.noneHint}</p>
        </Empty>
      )}
      {pages.items.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={text.title}>
          <table class="stacked">
            <thead>
              <tr>
                <th>{text.columns.time}</th>
                <th>{text.columns.who}</th>
                <th>{text.columns.action}</th>
                <th>{text.columns.subject}</th>
                <th>{text.columns.change}</th>
              </tr>
            </thead>
            <tbody>
              {pages.items.map((entry) => (
                <tr key={entry.id}>
                  <td>{when(entry.at)}</td>
                  <td>
                    {entry.actor_name || entry.actor}
                    {entry.address && <span class="hint"> {entry.address}</span>}
                  </td>
                  <td>
                    <code>{entry.action}</code>
                  </td>
                  <td>
                    {entry.subject_kind.replace("_", " ")} <span class="hint">{entry.subject_id}</span>
                  </td>
                  <td class="what">
                    <Changes entry={entry} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Pager pages={pages} label={text.pages} />
    </>
  );
}

/** The fields that an entry has changed, each with its value before and after. */
function Changes({ entry }: { entry: AuditEntry }) {
  const before = entry.before ?? {};
  const after = entry.after ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  if (names.length === 0) return null;
  return (
    <ul class="changes">
      {names.map((name) => (
        <li key={name}>
          <span class="hint">{name.replace(/_(pusd|ms)$/, "").replaceAll("_", " ")}</span>{" "}
          {name in before && <del>{shown(name, before[name])}</del>}{" "}
          {name in after && <ins>{shown(name, after[name])}</ins>}
        </li>
      ))}
    </ul>
  );
}

// Picodollars in a dollar.
const PUSD = 1e12;

/** Return a value as people read it: its field says whether it is a time or an amount. */
function shown(name: string, value: unknown): string {
  if (typeof value === "number" && name.endsWith("_pusd")) return money(value / PUSD);
  if (typeof value === "number" && name.endsWith("_ms")) return when(value / 1000);
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
