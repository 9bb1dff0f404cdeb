// Limits and budgets of users, teams, tags and end users.
import { useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { teamId, userId } from "../../admin/calls";
import { LimitsForm } from "./limits";

type Kind = "user" | "team" | "tag" | "end_user" | "end_users";

interface Field {
  name: string;
  label: string;
}

const USER: Field = { name: "user", label: "User" };
const KINDS: Record<Kind, { label: string; fields: readonly Field[] }> = {
  user: { label: "User", fields: [USER] },
  team: { label: "Team", fields: [{ name: "team", label: "Team" }] },
  tag: {
    label: "Tag",
    fields: [
      { name: "tag", label: "Key of the tag" },
      { name: "value", label: "Value" },
    ],
  },
  end_user: { label: "End user", fields: [USER, { name: "end_user", label: "End user" }] },
  end_users: { label: "Each end user of a user", fields: [USER] },
};

interface Subject {
  /** The path of its limits. */
  path: string;
  title: string;
}

/** Return the subject of a form's values, whose users and teams are names. */
async function subjectOf(kind: Kind, values: Readonly<Record<string, string>>): Promise<Subject> {
  const { user = "", team = "", tag = "", value = "", end_user: endUser = "" } = values;
  const encoded = encodeURIComponent;
  switch (kind) {
    case "user":
      return { path: `users/${encoded(await userId(user))}/limits`, title: `user ${user}` };
    case "team":
      return { path: `teams/${encoded(await teamId(team))}/limits`, title: `team ${team}` };
    case "tag":
      return { path: `tags/${encoded(tag)}/${encoded(value)}/limits`, title: `tag ${tag}=${value}` };
    case "end_user": {
      const path = `users/${encoded(await userId(user))}/end-users/${encoded(endUser)}/limits`;
      return { path, title: `end user ${endUser} of ${user}` };
    }
    case "end_users": {
      const path = `users/${encoded(await userId(user))}/end-user-limits`;
      return { path, title: `each end user of ${user}` };
    }
  }
}

export function SubjectLimits() {
  const [kind, setKind] = useState<Kind>("user");
  const [subject, setSubject] = useState<Subject>();
  const [error, setError] = useState<unknown>();

  async function show(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    setError(undefined);
    setSubject(undefined);
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const values = Object.fromEntries(
      KINDS[kind].fields.map(({ name }) => [name, String(data.get(name) ?? "").trim()]),
    );
    try {
      setSubject(await subjectOf(kind, values));
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <section aria-labelledby="subjects">
      <h2 id="subjects">Limits and budgets</h2>
      <p class="hint">Those of keys, users and teams are beside them, too.</p>
      <form class="actions" aria-label="Subject" onSubmit={show}>
        <label>
          Of
          <select
            value={kind}
            onChange={(event) => {
              setKind(event.currentTarget.value as Kind);
              setSubject(undefined);
              setError(undefined);
            }}
          >
            {Object.entries(KINDS).map(([name, { label }]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {KINDS[kind].fields.map(({ name, label }) => (
          <label key={`${kind}/${name}`}>
            {label}
            <input name={name} required autocomplete="off" />
          </label>
        ))}
        <button>Show</button>
      </form>
      <Failure error={error} />
      {subject && (
        <article aria-label={`Limits of ${subject.title}`}>
          <h3>Limits of {subject.title}</h3>
          <LimitsForm key={subject.path} path={subject.path} />
        </article>
      )}
    </section>
  );
}
