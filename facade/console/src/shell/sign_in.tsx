// The sign-in: the page of those who are not signed in, and the dialog over the page of somebody whose
// session has ended, which goes on afterwards.
import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError, toError } from "../api/client";
import { Failure } from "../parts/failure";
import {
  hasEnded,
  issuerAddress,
  issuerName,
  session,
  signIn,
  signInProblem,
  signOut,
} from "./session";

export function SignIn() {
  return (
    <main class="sign-in" id="main">
      <h1>Gateway console</h1>
      {signInProblem.value && <p role="status">{signInProblem.value}</p>}
      {issuerName.value && (
        <>
          <a class="button" href={issuerAddress(location.pathname + location.search)}>
            Sign in with {issuerName.value}
          </a>
          <p class="hint">or with a key:</p>
        </>
      )}
      <KeyForm />
      <p class="hint">
        <code>make run</code> and <code>gateway console</code> print a link that signs in, and{" "}
        <code>gateway keys create --user NAME</code> makes a key. The sign-in holds for all tabs.
      </p>
    </main>
  );
}

/** Asks for another sign-in while the page below keeps all that was being written. */
export function SignInAgain() {
  if (!hasEnded.value) return null;
  return <OpenSignInAgain />;
}

function OpenSignInAgain() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="sign-in-again"
      aria-label="Sign in again"
      // Escape would leave a page that can do nothing.
      onCancel={(event) => event.preventDefault()}
    >
      <strong>Your sign-in has ended</strong>
      <p>
        Sign in again as {session.value?.user} to go on. Nothing that you have written is lost.
      </p>
      {issuerName.value && (
        <a class="button" href={issuerAddress("/console/signed-in")} target="_blank">
          Sign in with {issuerName.value}
        </a>
      )}
      <KeyForm />
      <button type="button" class="quiet" onClick={() => void signOut()}>
        Sign out
      </button>
    </dialog>
  );
}

/** The page that a tab shows which was opened to sign in again; it has told the others. */
export function SignedIn() {
  return (
    <main class="sign-in" id="main">
      <h1>You are signed in</h1>
      <p>
        Go back to the tab in which you were working, or <a href="/console">open the console here</a>.
      </p>
    </main>
  );
}

function KeyForm() {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError>();

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      const response = await signIn({ key: key.trim() });
      if (!response.ok) {
        setFailure(toError(response.status, response.headers, await response.text()));
      }
    } catch {
      setFailure(new ApiError("The gateway does not answer. Is it running?", 0));
    } finally {
      setBusy(false);
    }
  }

  return (
    <>
      <form onSubmit={submit}>
        <label>
          API key
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button disabled={isBusy}>Sign in</button>
      </form>
      <Failure error={failure} />
    </>
  );
}
