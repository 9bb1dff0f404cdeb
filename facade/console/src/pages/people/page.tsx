// Users, teams and keys with their limits, and the log of changes.
import { useLocation } from "preact-iso";

import { Segments } from "../../parts/segments";
import { useTitle } from "../../parts/title";
import { peopleWords } from "../../words/people";
import { administersAll, isAdministrator } from "../../shell/session";
import { AdminSignIn } from "../../admin/sign_in";
import { Audit } from "./audit";
import { Invitations } from "./invitations";
import { Keys } from "./keys";
import { OtherLimits } from "./other_limits";
import { Teams } from "./teams";
import { Users } from "./users";

const TABS = { keys: Keys, users: Users, invitations: Invitations, teams: Teams, limits: OtherLimits, audit: Audit };
type Tab = keyof typeof TABS;
const OF_TEAM: readonly string[] = ["keys", "users", "invitations"] satisfies Tab[];
const text = peopleWords;

export default function People() {
  useTitle(text.title);
  const { query, path, route } = useLocation();
  const choices = Object.fromEntries(
    Object.entries(text.tabs.choices).filter(
      ([one]) => administersAll.value || OF_TEAM.includes(one),
    ),
  ) as typeof text.tabs.choices;
  const tab: Tab = (query["tab"] ?? "") in choices ? (query["tab"] as Tab) : "keys";
  const Shown = TABS[tab];
  return (
    <>
      <div class="page-head">
        <h1>{text.title}</h1>
        {isAdministrator.value && (
          <Segments
            label={text.tabs.label}
            choices={choices}
            value={tab}
            onChange={(now) => route(now === "keys" ? path : `${path}?tab=${now}`)}
          />
        )}
      </div>
      {isAdministrator.value ? <Shown /> : <AdminSignIn />}
    </>
  );
}
