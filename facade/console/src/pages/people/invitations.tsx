// Invitations: links that make people users of the gateway with a role.
import { useState } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { usePaged } from "../../parts/paged";
import { Status, type Tone } from "../../parts/status";
import { administersAll, session } from "../../shell/session";
import { words } from "../../words/common";
import { peopleWords } from "../../words/people";
import {
  type Invitation,
  PLANS,
  createInvitation,
  listInvitations,
  revokeInvitation,
} from "./accounts";
import { CardList } from "./card_list";
import { RoleOptions } from "./role_options";
import { ShownOnce } from "./shown_once";

const text = peopleWords.invitations;
const TONES: Record<Invitation["state"], Tone> = { open: "good", accepted: "quiet", expired: "bad" };
const DAY_S = 86_400;
const DAYS = [1, 7, 30, 90] as const;
const DEFAULT_DAYS = 7;

export function Invitations() {
  const invitations = usePaged(listInvitations, []);
  const [link, setLink] = useState<string>();
  return (
    <>
      <p class="hint">{text.hint}</p>
      <Invite
        onCreated={(created) => {
          setLink(new URL(created, location.origin).href);
          invitations.reload();
        }}
      />
      <ShownOnce
        secret={link}
        name={text.theLink}
        hint={text.shownOnce}
        onDone={() => setLink(undefined)}
      />
      <CardList
        list={invitations}
        title={text.title}
        more={text.more}
        none={text.none}
        noneHint={text.noneHint}
      >
        {(invitation) => <Card invitation={invitation} onChanged={invitations.reload} />}
      </CardList>
    </>
  );
}

function Card({ invitation, onChanged }: { invitation: Invitation; onChanged: () => void }) {
  const name = invitation.user ?? text.anybody;
  const by = invitation.created_by_name ?? invitation.created_by;
  return (
    <article aria-label={name}>
      <h3>
        {name} <Status tone={TONES[invitation.state]}>{text.states[invitation.state]}</Status>
      </h3>
      <p class="hint">
        {words.roles[invitation.role]}
        {invitation.team !== null && ` · ${peopleWords.users.inTeam(invitation.team)}`}
        {` · ${text.by(by, when(invitation.created_at))}`}
        {invitation.accepted_at === null
          ? ` · ${text.ends(when(invitation.expires_at))}`
          : ` · ${text.acceptedAt(when(invitation.accepted_at))}`}
      </p>
      {invitation.state === "open" && (
        <div class="actions">
          <ConfirmButton
            label={text.revoke}
            name={name}
            question={text.revokeQuestion(name)}
            onConfirm={async () => {
              await revokeInvitation(invitation.id);
              onChanged();
            }}
          />
        </div>
      )}
    </article>
  );
}

function Invite({ onCreated }: { onCreated: (link: string) => void }) {
  const { error, run } = useActions();
  // A reset would choose the first role and end, not those that are chosen here.
  const [count, setCount] = useState(0);

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const data = new FormData(form);
    const field = (name: string): string => String(data.get(name) ?? "").trim();
    const optional = Object.fromEntries(
      ["user", "team", "plan"].flatMap((one) => (field(one) === "" ? [] : [[one, field(one)]])),
    );
    void run(async () => {
      const created = await createInvitation({
        ...optional,
        role: field("role"),
        expires_at: Math.floor(Date.now() / 1000) + Number(field("days")) * DAY_S,
      });
      setCount((before) => before + 1);
      if (created.link !== undefined) onCreated(created.link);
    });
  }

  return (
    <>
      <form key={count} class="actions" aria-label={text.create} onSubmit={submit}>
        <label>
          {text.user}
          <input name="user" autocomplete="off" maxLength={64} />
        </label>
        <label>
          {peopleWords.users.role}
          <select name="role">
            <RoleOptions initial="user" />
          </select>
        </label>
        {administersAll.value ? (
          <>
            <label>
              {peopleWords.keys.team}
              <input name="team" autocomplete="off" />
            </label>
            <label>
              {text.plan}
              <select name="plan">
                <option value="">{text.defaultPlan}</option>
                {PLANS.map((plan) => (
                  <option key={plan} value={plan}>
                    {words.plans[plan]}
                  </option>
                ))}
              </select>
            </label>
          </>
        ) : (
          <p class="hint">{peopleWords.users.inTeam(session.value?.team ?? "")}</p>
        )}
        <label>
          {text.endsIn}
          <select name="days">
            {DAYS.map((days) => (
              <option key={days} value={days} selected={days === DEFAULT_DAYS}>
                {text.days(days)}
              </option>
            ))}
          </select>
        </label>
        <button>{text.create}</button>
      </form>
      <Failure error={error} />
    </>
  );
}
