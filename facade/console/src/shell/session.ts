// The API keys of this tab. They stay in its session storage: other tabs and later visits do not
// have them.
import { signal } from "@preact/signals";

const KEY = "gateway.key";
const ADMIN_KEY = "gateway.admin-key";

/** The API key; "" before the sign-in. */
export const apiKey = signal(sessionStorage.getItem(KEY) ?? "");
/** The admin key, for the page of operations alone; "" while none was entered. */
export const adminKey = signal(sessionStorage.getItem(ADMIN_KEY) ?? "");
/** Why the admin key is asked for again; "" for no reason. */
export const adminKeyForgottenBecause = signal("");
/** Why the sign-in page is shown again, such as an expired key; "" for no reason. */
export const signedOutBecause = signal("");

export function signIn(key: string): void {
  // What the tab keeps of somebody else goes first.
  if (apiKey.value !== key) signOut();
  sessionStorage.setItem(KEY, key);
  signedOutBecause.value = "";
  apiKey.value = key;
}

/** Forget the keys, and all that pages keep in this tab. */
export function signOut(reason = ""): void {
  sessionStorage.clear();
  signedOutBecause.value = reason;
  apiKey.value = "";
  adminKey.value = "";
}

export function useAdminKey(key: string): void {
  sessionStorage.setItem(ADMIN_KEY, key);
  adminKeyForgottenBecause.value = "";
  adminKey.value = key;
}

export function forgetAdminKey(reason = ""): void {
  sessionStorage.removeItem(ADMIN_KEY);
  adminKeyForgottenBecause.value = reason;
  adminKey.value = "";
}

/**
 * Sign in with the one-time code of the link that the gateway printed, `/console#code=…`.
 *
 * A fragment is never sent to a server, so no log has it; it leaves the address at once.
 */
export async function signInFromLink(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return;
  history.replaceState(null, "", location.pathname);
  let response: Response;
  try {
    response = await fetch("/console/sign-in", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code }),
    });
  } catch {
    signedOutBecause.value = "The gateway does not answer.";
    return;
  }
  if (response.ok) {
    signIn(((await response.json()) as { key: string }).key);
  } else {
    signedOutBecause.value =
      "The link has been used or has expired. Enter a key, or print a new link with `gateway console`.";
  }
}
