// Users: their teams, keys, limits; new ones, and the end of old ones.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { usePaged } from "../../parts/paged";
import { useActions } from "../../parts/actions";
import { administersAll } from "../../shell/session";
import { words } from "../../words/common";
import { peopleWords } from "../../words/people";
import { requestsWords } from "../../words/requests";
import { type User, createUser, deleteUser, eraseUser, listUsers, moveUser, setRole } from "./accounts";
import { CardList, Toggle } from "./card_list";
import { LimitsForm } from "./limits";
import { NameSearch } from "./name_search";
import { RoleOptions, mayMakeAdministrators } from "./role_options";

const text = peopleWords.users;

export function Users() {
  const [name, setName] = useState("");
  const users = usePaged((page, signal) => listUsers(name === "" ? {} : { name }, page, signal), [name]);
  const { error, run } = useActions();

  function create(event: SubmitEvent): void {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const data = new FormData(form);
    const field = (one: string): string => String(data.get(one) ?? "").trim();
    void run(async () => {
      await createUser(field("name"), field("team"));
      form.reset();
      users.reload();
    });
  }

  return (
    <>
      {administersAll.value && (
        <>
          <form class="actions" aria-label={text.create} onSubmit={create}>
            <label>
              {text.name}
              <input name="name" required autocomplete="off" />
            </label>
            <label>
              {text.team}
              <input name="team" autocomplete="off" />
            </label>
            <button>{text.create}</button>
          </form>
          <p class="hint">{text.createHint}</p>
        </>
      )}
      <CardList
        list={users}
        error={error}
        title={text.title}
        more={text.more}
        none={name === "" ? text.none : text.noneNamed(name)}
        noneHint={administersAll.value ? text.noneHint : undefined}
        search={<NameSearch label={text.search} onSearch={setName} />}
      >
        {(user) => <Card user={user} onChanged={users.reload} />}
      </CardList>
    </>
  );
}

function Card({ user, onChanged }: { user: User; onChanged: () => void }) {
  const [shown, setShown] = useState<"" | "limits" | "team">("");
  const { error, run } = useActions();
  const toggle = (one: "limits" | "team"): void => setShown((now) => (now === one ? "" : one));
  const id = encodeURIComponent(user.id);
  return (
    <article aria-label={user.name}>
      <h3>{user.name}</h3>
      <p class="hint">
        {user.role !== null && `${words.roles[user.role]} · `}
        {user.team === null ? text.noTeam : text.inTeam(user.team)} · {words.plans[user.plan]} · {text.since(when(user.created_at))}
      </p>
      <div class="actions">
        <a href={`/console/people?user=${encodeURIComponent(user.name)}`}>
          {text.keys}
          <span class="visually-hidden"> {user.name}</span>
        </a>
        {administersAll.value && (user.role !== "admin" || mayMakeAdministrators()) && (
          <label class="inline">
            {text.role}
            <select
              value={user.role ?? ""}
              aria-label={text.roleOf(user.name)}
              onChange={(event) => {
                const role = event.currentTarget.value;
                void run(async () => {
                  try {
                    await setRole(user.id, role === "" ? null : role);
                  } finally {
                    onChanged();
                  }
                });
              }}
            >
              <option value="">{text.noRole}</option>
              <RoleOptions />
            </select>
          </label>
        )}
        {administersAll.value && (
          <>
            <Toggle
              name={user.name}
              label={peopleWords.keys.limits}
              isOpen={shown === "limits"}
              onClick={() => toggle("limits")}
            />
            <Toggle name={user.name} label={text.move} isOpen={shown === "team"} onClick={() => toggle("team")} />
            <a href={`/console/requests?scope=everyone&user_id=${id}`}>
              {requestsWords.title}
              <span class="visually-hidden"> {user.name}</span>
            </a>
            <ConfirmButton
              label={text.remove}
              name={user.name}
              question={text.removeQuestion(user.name)}
              onConfirm={async () => {
                await deleteUser(user.id);
                onChanged();
              }}
            />
            <ConfirmButton
              label={text.erase}
              name={user.name}
              question={text.eraseQuestion(user.name)}
              onConfirm={async () => {
                await eraseUser(user.id);
                onChanged();
              }}
            />
          </>
        )}
      </div>
      <Failure error={error} />
      {shown === "limits" && <LimitsForm path={`users/${id}/limits`} />}
      {shown === "team" && (
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            const data = new FormData(event.currentTarget as HTMLFormElement);
            const team = String(data.get("team") ?? "").trim();
            void run(async () => {
              await moveUser(user.id, team === "" ? null : team);
              setShown("");
              onChanged();
            });
          }}
        >
          <label>
            {text.moveTo}
            <input name="team" autocomplete="off" defaultValue={user.team ?? ""} />
          </label>
          <button>{peopleWords.keys.save}</button>
        </form>
      )}
    </article>
  );
}
