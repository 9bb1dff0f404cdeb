// The roles that the person who is signed in may give.
import { type Role, session } from "../../shell/session";
import { words } from "../../words/common";

const ROLES: readonly Role[] = ["viewer", "user", "team_admin", "admin"];

/** Whether the person may give the role of an administrator, or take it. */
export const mayMakeAdministrators = (): boolean =>
  session.value?.admin_scopes.includes("all") === true;

/** Options of a list of roles; `initial` is the one that is selected at first. */
export function RoleOptions({ initial }: { initial?: Role }) {
  return (
    <>
      {ROLES.filter((role) => role !== "admin" || mayMakeAdministrators()).map((role) => (
        <option key={role} value={role} selected={role === initial}>
          {words.roles[role]}
        </option>
      ))}
    </>
  );
}
