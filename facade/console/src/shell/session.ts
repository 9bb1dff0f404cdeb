// Who is signed in. The session's cookie is out of reach of scripts and shared by all tabs; tabs tell
// one another of sign-ins and sign-outs.
import { computed, signal } from "@preact/signals";

import { words } from "../words/common";
import { shellWords } from "../words/shell";

export type Role = "viewer" | "user" | "team_admin" | "admin";

export interface Session {
  user_id: string;
  user: string;
  team: string | null;
  role: Role;
  /** Scopes of the open calls of administration; none where it is closed. */
  admin_scopes: readonly string[];
  /** Whether an admin key opens calls of administration. */
  may_unlock: boolean;
  /** Unix seconds. */
  ends_at: number;
  csrf_token: string;
}

interface State {
  session: Session | null;
  oidc: { name: string } | null;
}

const PATH = "/console/session";
// The user whose drafts this tab keeps.
const USER = "gateway.user";
const INVITATION = "gateway.invitation";

/** The session; undefined before the sign-in. */
export const session = signal<Session | undefined>(undefined);
/** The user who is signed in; "" before the sign-in. It stays while an ended session is renewed. */
export const userId = computed(() => session.value?.user_id ?? "");
/** Whether the session has ended while the page is in use: the page waits for another sign-in. */
export const hasEnded = signal(false);
/** Whether calls of administration are open. */
export const isAdministrator = computed(() => (session.value?.admin_scopes.length ?? 0) > 0);
/** Whether they are for all teams: administrators of a team have its keys and users alone. */
export const administersAll = computed(
  () => session.value?.admin_scopes.some((scope) => scope !== "team") === true,
);
/** Whether they are for all teams, or an admin key may open them. */
export const mayAdministerAll = computed(
  () => administersAll.value || session.value?.may_unlock === true,
);
/** What the issuer is called with which people sign in; "" without one. */
export const issuerName = signal("");
/** The token of the invitation whose page is shown; "" for none. It survives a reload of the tab. */
export const invitation = signal("");
/** Why the sign-in page is shown, such as a link that has been used; "" for no reason. */
export const signInProblem = signal("");

const texts = shellWords.signIn;
const FAILURES: Readonly<Record<string, string>> = texts.failures;

const forgetting: (() => void)[] = [];

/** Call a function when what the tab keeps of its user is forgotten: at the sign-out, say. */
export function onForget(callback: () => void): void {
  forgetting.push(callback);
}

const tabs = new BroadcastChannel("gateway.session");
tabs.addEventListener("message", ({ data }) => {
  const isWaiting = hasEnded.value || session.value === undefined;
  if (data === "changed" || isWaiting) void refresh();
});

/** Headers of requests of the session. */
export function sessionHeaders(): Record<string, string> {
  return { "x-csrf-token": session.value?.csrf_token ?? "" };
}

/** Load the session of this browser, after a sign-in by the link in the address. */
export async function loadSession(): Promise<void> {
  invitation.value = sessionStorage.getItem(INVITATION) ?? "";
  window.addEventListener("hashchange", () => void signInFromLink());
  if (!(await signInFromLink())) await refresh();
  // The issuer may just have signed in by this tab what others wait for.
  if (session.value !== undefined) tabs.postMessage("loaded");
}

/** Return whether the browser is signed in as the user whose page this is. */
export async function refresh(): Promise<boolean> {
  const before = session.value?.csrf_token;
  let state: State;
  try {
    const response = await fetch(PATH, { cache: "no-store" });
    if (!response.ok) return false;
    state = (await response.json()) as State;
  } catch {
    signInProblem.value = words.noAnswer;
    return false;
  }
  apply(state);
  return state.session !== null && (before === undefined || state.session.csrf_token !== before);
}

function apply({ session: current, oidc }: State): void {
  issuerName.value = oidc?.name ?? "";
  if (current === null) {
    // What was being written stays where it is, until somebody signs in.
    if (session.value !== undefined) hasEnded.value = true;
    return;
  }
  const kept = sessionStorage.getItem(USER);
  const isOther = kept !== null && kept !== current.user_id;
  // What the tab keeps of somebody else goes first.
  if (isOther) forget();
  sessionStorage.setItem(USER, current.user_id);
  session.value = current;
  hasEnded.value = false;
  signInProblem.value = "";
}

/** Sign in with a key or a one-time code; returns the response when it is refused. */
export async function signIn(credential: { key: string } | { code: string }): Promise<Response> {
  return post(PATH, credential);
}

/** Open the calls of administration that an admin key permits. */
export async function unlock(key: string): Promise<Response> {
  return post(`${PATH}/unlock`, { key });
}

/** Accept the invitation whose page is shown; the answer has the key of the new user. */
export async function acceptInvitation(user: string): Promise<Response> {
  const token = invitation.value;
  return post("/console/invitation/accept", user === "" ? { token } : { token, user });
}

/** Leave the page of an invitation, which stays open to who has its link. */
export function closeInvitation(): void {
  releaseInvitation();
  invitation.value = "";
}

/** Have the page of the invitation end with the document: the browser goes to the issuer. */
export function releaseInvitation(): void {
  sessionStorage.removeItem(INVITATION);
}

/** Send JSON to an address of the sign-in. */
export function postJson(path: string, body: object): Promise<Response> {
  return fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...sessionHeaders() },
    body: JSON.stringify(body),
  });
}

async function post(path: string, body: object): Promise<Response> {
  const response = await postJson(path, body);
  if (response.ok) {
    apply((await response.clone().json()) as State);
    tabs.postMessage("changed");
  }
  return response;
}

/** Sign out, in all tabs; what they keep is forgotten. */
export async function signOut(): Promise<void> {
  try {
    await fetch(PATH, { method: "DELETE", headers: sessionHeaders() });
  } catch {
    // The session ends by itself.
  }
  forget();
  leaving.postMessage("signed out");
}

const leaving = new BroadcastChannel("gateway.sign-out");
leaving.addEventListener("message", () => forget());

function forget(): void {
  sessionStorage.clear();
  session.value = undefined;
  hasEnded.value = false;
  for (const callback of forgetting) callback();
}

/**
 * Wait until the person has signed in again, after a request was refused. Returns false where nobody
 * was signed in.
 */
export async function signedInAgain(signal?: AbortSignal): Promise<boolean> {
  if (session.value === undefined) return false;
  // Another tab may have signed in already.
  if (await refresh()) return true;
  if (session.value === undefined) return false;
  hasEnded.value = true;
  return new Promise((resolve, reject) => {
    const dispose = hasEnded.subscribe((ended) => {
      if (ended) return;
      queueMicrotask(() => dispose());
      resolve(session.value !== undefined);
    });
    signal?.addEventListener("abort", () => {
      dispose();
      reject(signal.reason);
    });
  });
}

/** Address that signs in at the issuer, and comes back to a page of the console. */
export function issuerAddress(to: string): string {
  return `/console/oidc/start?${new URLSearchParams({ to })}`;
}

/**
 * Sign in with the one-time code of a link, `/console#code=…`; returns whether there was one.
 *
 * A fragment is never sent to a server, so no log has it; it leaves the address at once.
 */
async function signInFromLink(): Promise<boolean> {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get("code");
  const failure = fragment.get("sign-in");
  const invited = fragment.get("invitation");
  if (code === null && failure === null && invited === null) return false;
  history.replaceState(history.state, "", location.pathname + location.search);
  if (invited !== null) {
    sessionStorage.setItem(INVITATION, invited);
    invitation.value = invited;
    return false;
  }
  if (code === null) {
    closeInvitation();
    await refresh();
    if (userId.value === "") signInProblem.value = FAILURES[failure!] ?? texts.failures.failed;
    return true;
  }
  try {
    const response = await signIn({ code });
    if (response.ok) return true;
  } catch {
    signInProblem.value = words.noAnswer;
    return true;
  }
  await refresh();
  if (userId.value === "") {
    signInProblem.value = texts.usedLink;
  }
  return true;
}
