// Limits and budgets of users, teams, tags and end users.
import { useState } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { teamId, userId } from "../../admin/calls";
import { peopleWords } from "../../words/people";
import { LimitsForm } from "./limits";

const text = peopleWords.limits.subjects;

type Kind = "user" | "team" | "tag" | "end_user" | "end_users";

const KINDS: Record<Kind, readonly (keyof typeof text.fields)[]> = {
  user: ["user"],
  team: ["team"],
  tag: ["tag", "value"],
  end_user: ["user", "end_user"],
  end_users: ["user"],
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
  const { names } = text;
  switch (kind) {
    case "user":
      return { path: `users/${encoded(await userId(user))}/limits`, title: names.user(user) };
    case "team":
      return { path: `teams/${encoded(await teamId(team))}/limits`, title: names.team(team) };
    case "tag":
      return { path: `tags/${encoded(tag)}/${encoded(value)}/limits`, title: names.tag(tag, value) };
    case "end_user": {
      const path = `users/${encoded(await userId(user))}/end-users/${encoded(endUser)}/limits`;
      return { path, title: names.end_user(user, endUser) };
    }
    case "end_users": {
      const path = `users/${encoded(await userId(user))}/end-user-limits`;
      return { path, title: names.end_users(user) };
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
      KINDS[kind].map((name) => [name, String(data.get(name) ?? "").trim()]),
    );
    try {
      setSubject(await subjectOf(kind, values));
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <section aria-labelledby="subjects">
      <h2 id="subjects">{text.title}</h2>
      <p class="hint">{text.hint}</p>
      <form class="actions" aria-label={text.label} onSubmit={show}>
        <label>
          {text.of}
          <select
            value={kind}
            onChange={(event) => {
              setKind(event.currentTarget.value as Kind);
              setSubject(undefined);
              setError(undefined);
            }}
          >
            {Object.entries(text.kinds).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {KINDS[kind].map((name) => (
          <label key={`${kind}/${name}`}>
            {text.fields[name]}
            <input name={name} required autocomplete="off" />
          </label>
        ))}
        <button>{text.show}</button>
      </form>
      <Failure error={error} />
      {subject && (
        <article aria-label={text.limitsOf(subject.title)}>
          <h3>{text.limitsOf(subject.title)}</h3>
          <LimitsForm key={subject.path} path={subject.path} />
        </article>
      )}
    </section>
  );
}
