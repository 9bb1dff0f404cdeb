// Teams: plans, limits, members.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { usePaged } from "../../parts/paged";
import { useActions } from "../../parts/actions";
import { words } from "../../words/common";
import { peopleWords } from "../../words/people";
import { PLANS, type Team, createTeam, deleteTeam, listTeams, setTeamPlan } from "./accounts";
import { CardList, Toggle } from "./card_list";
import { LimitsForm } from "./limits";
import { NameSearch } from "./name_search";

const text = peopleWords.teams;

export function Teams() {
  const [name, setName] = useState("");
  const teams = usePaged((page, signal) => listTeams(name, page, signal), [name]);
  const { error, run } = useActions();

  function create(event: SubmitEvent): void {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const data = new FormData(form);
    void run(async () => {
      await createTeam(String(data.get("name") ?? "").trim(), String(data.get("plan") ?? ""));
      form.reset();
      teams.reload();
    });
  }

  return (
    <>
      <form class="actions" aria-label={text.create} onSubmit={create}>
        <label>
          {text.name}
          <input name="name" required autocomplete="off" />
        </label>
        <label>
          {text.plan}
          <select name="plan">
            {PLANS.map((plan) => (
              <option key={plan} value={plan}>
                {words.plans[plan]}
              </option>
            ))}
          </select>
        </label>
        <button>{text.create}</button>
      </form>
      <CardList
        list={teams}
        error={error}
        title={text.title}
        more={text.more}
        none={name === "" ? text.none : text.noneNamed(name)}
        noneHint={text.noneHint}
        search={<NameSearch label={text.search} onSearch={setName} />}
      >
        {(team) => <Card team={team} onChanged={teams.reload} />}
      </CardList>
    </>
  );
}

function Card({ team, onChanged }: { team: Team; onChanged: () => void }) {
  const [isShown, setShown] = useState(false);
  const { error, run } = useActions();
  return (
    <article aria-label={team.name}>
      <h3>{team.name}</h3>
      <p class="hint">
        {text.members(team.users)} · {peopleWords.users.since(when(team.created_at))}
      </p>
      <div class="actions">
        <label class="inline">
          {text.plan}
          <select
            value={team.plan}
            onChange={(event) => {
              const plan = event.currentTarget.value;
              void run(async () => {
                await setTeamPlan(team.id, plan);
                onChanged();
              });
            }}
          >
            {PLANS.map((plan) => (
              <option key={plan} value={plan}>
                {words.plans[plan]}
              </option>
            ))}
          </select>
        </label>
        <Toggle
          name={team.name}
          label={peopleWords.keys.limits}
          isOpen={isShown}
          onClick={() => setShown(!isShown)}
        />
        <ConfirmButton
          label={text.remove}
          name={team.name}
          question={text.removeQuestion(team.name)}
          onConfirm={async () => {
            await deleteTeam(team.id);
            onChanged();
          }}
        />
      </div>
      <Failure error={error} />
      {isShown && <LimitsForm path={`teams/${encodeURIComponent(team.id)}/limits`} />}
    </article>
  );
}
