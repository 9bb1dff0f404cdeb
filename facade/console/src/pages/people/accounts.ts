// Users, teams, keys, their limits and the audit log, for administrators.
import type { LimitUsage } from "../../parts/limit_states";
import type { Role } from "../../shell/session";
import { type List, call } from "../../admin/calls";

export const PLANS = ["personal_free", "personal_pro", "team_pro", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

export interface Key {
  id: string;
  prefix: string;
  name: string;
  user: string;
  team: string | null;
  plan: Plan;
  state: "active" | "disabled" | "expired" | "revoked";
  enabled: boolean;
  /** Unix seconds. */
  created_at: number;
  /** Unix seconds, or null. */
  expires_at: number | null;
  /** The key itself, in the answer that creates it alone. */
  key?: string;
}

export interface User {
  id: string;
  name: string;
  team: string | null;
  plan: Plan;
  /** The role that is set, or null. */
  role: Role | null;
  /** Unix seconds. */
  created_at: number;
}

export interface Invitation {
  id: string;
  role: Role;
  /** Name or address of the person, or null. */
  user: string | null;
  team: string | null;
  state: "open" | "accepted" | "expired";
  created_by: string;
  created_by_name: string | null;
  /** Unix seconds. */
  created_at: number;
  /** Unix seconds. */
  expires_at: number;
  /** Unix seconds, or null. */
  accepted_at: number | null;
  /** Address that accepts it, in the answer that creates it alone. */
  link?: string;
}

export interface Team {
  id: string;
  name: string;
  plan: Plan;
  users: number;
  /** Unix seconds. */
  created_at: number;
}

/** The limits of one subject with what is left of them. */
export interface LimitedSubject {
  id: string;
  subject_kind: LimitUsage["subject_kind"];
  subject_id: string;
  subject_name: string;
  usage: LimitUsage[];
}

export interface AuditEntry {
  id: string;
  /** Unix seconds. */
  at: number;
  actor: string;
  actor_name: string | null;
  address: string | null;
  action: string;
  subject_kind: string;
  subject_id: string;
  before: Readonly<Record<string, unknown>> | null;
  after: Readonly<Record<string, unknown>> | null;
}

interface Page<T> {
  items: T[];
  next: string;
}

const PAGE_SIZE = "50";

async function listed<T>(
  path: string,
  filter: Readonly<Record<string, string>>,
  page: string,
  signal: AbortSignal | undefined,
): Promise<Page<T>> {
  const query = new URLSearchParams({ limit: PAGE_SIZE, ...filter, ...(page ? { page } : {}) });
  const list = await call<List<T>>(`/admin/v1/${path}?${query}`, signal ? { signal } : {});
  return { items: list.data, next: list.next_page ?? "" };
}

const change = <T>(method: "POST" | "PATCH" | "DELETE", path: string, fields?: object): Promise<T> =>
  call(`/admin/v1/${path}`, fields === undefined ? { method } : { method, json: fields });
const at = (list: string, id: string): string => `${list}/${encodeURIComponent(id)}`;

/** Return a page of the keys of a user, or of all users for "". */
export const listKeys = (user: string, page: string, signal?: AbortSignal): Promise<Page<Key>> =>
  listed("keys", user === "" ? {} : { user }, page, signal);

export const createKey = (fields: {
  user: string;
  name?: string;
  team?: string;
  expires_at?: number;
}): Promise<Key> => change("POST", "keys", fields);

export const updateKey = (
  id: string,
  fields: { enabled?: boolean; expires_at?: number | null },
): Promise<Key> => change("PATCH", at("keys", id), fields);

export const revokeKey = (id: string): Promise<Key> => change("POST", `${at("keys", id)}/revoke`);

/** Make a new key in place of one, which works for another day. */
export const rotateKey = (id: string): Promise<Key> => change("POST", `${at("keys", id)}/rotate`);

export const listUsers = (
  filter: Readonly<Record<string, string>>,
  page: string,
  signal?: AbortSignal,
): Promise<Page<User>> => listed("users", filter, page, signal);

export const createUser = (name: string, team: string): Promise<User> =>
  change("POST", "users", team === "" ? { name } : { name, team });

export const moveUser = (id: string, team: string | null): Promise<User> =>
  change("PATCH", at("users", id), { team });

export const setRole = (id: string, role: string | null): Promise<User> =>
  change("PATCH", at("users", id), { role });

export const deleteUser = (id: string): Promise<unknown> => change("DELETE", at("users", id));

export const eraseUser = (id: string): Promise<unknown> =>
  change("POST", `${at("users", id)}/erase`);

export const listInvitations = (page: string, signal?: AbortSignal): Promise<Page<Invitation>> =>
  listed("invitations", {}, page, signal);

export const createInvitation = (fields: {
  role: string;
  user?: string;
  team?: string;
  plan?: string;
  expires_at: number;
}): Promise<Invitation> => change("POST", "invitations", fields);

export const revokeInvitation = (id: string): Promise<unknown> =>
  change("DELETE", at("invitations", id));

export const listTeams = (
  name: string,
  page: string,
  signal?: AbortSignal,
): Promise<Page<Team>> => listed("teams", name === "" ? {} : { name }, page, signal);

export const createTeam = (name: string, plan: string): Promise<Team> =>
  change("POST", "teams", { name, plan });

export const setTeamPlan = (id: string, plan: string): Promise<Team> =>
  change("PATCH", at("teams", id), { plan });

export const deleteTeam = (id: string): Promise<unknown> => change("DELETE", at("teams", id));

export const listLimits = (page: string, signal?: AbortSignal): Promise<Page<LimitedSubject>> =>
  listed("limits", {}, page, signal);

/** Return a page of the audit log, the newest first; of all kinds of subjects for "". */
export const listAudit = (
  kind: string,
  page: string,
  signal?: AbortSignal,
): Promise<Page<AuditEntry>> =>
  listed("audit", kind === "" ? {} : { subject_kind: kind }, page, signal);
