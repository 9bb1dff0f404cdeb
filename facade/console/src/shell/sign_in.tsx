import { useState } from "preact/hooks";

import { ApiError, toError } from "../api/client";
import { Failure } from "../parts/failure";
import { signIn, signedOutBecause } from "./session";

export function SignIn() {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError>();

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      const response = await fetch("/v1/models", {
        headers: { authorization: `Bearer ${key.trim()}` },
        cache: "no-store",
      });
      if (response.ok) signIn(key.trim());
      else setFailure(toError(response.status, response.headers, await response.text()));
    } catch {
      setFailure(new ApiError("The gateway does not answer. Is it running?", 0));
    } finally {
      setBusy(false);
    }
  }

  return (
    <main class="sign-in" id="main">
      <h1>Gateway console</h1>
      {signedOutBecause.value && <p role="status">{signedOutBecause.value}</p>}
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
      <p class="hint">
        <code>make run</code> prints a link that signs in, and{" "}
        <code>gateway keys create --user NAME</code> makes a key. It stays in this tab and ends with
        it.
      </p>
    </main>
  );
}
