// Asks for an admin key, where the role of the person opens no administration.
import { useState } from "preact/hooks";

import { ApiError, toError } from "../api/client";
import { Failure } from "../parts/failure";
import { session, unlock } from "../shell/session";

export function AdminSignIn() {
  const [key, setKey] = useState("");
  const [failure, setFailure] = useState<ApiError>();
  if (session.value?.may_unlock === false) {
    return <p>Your role does not permit operations. An administrator of the single sign-on decides it.</p>;
  }

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setFailure(undefined);
    try {
      const response = await unlock(key.trim());
      if (!response.ok) {
        setFailure(toError(response.status, response.headers, await response.text()));
      }
    } catch {
      setFailure(new ApiError("The gateway does not answer. Is it running?", 0));
    }
  }

  return (
    <div class="sign-in">
      <form onSubmit={submit}>
        <label>
          Admin key
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button>Show operations</button>
      </form>
      <Failure error={failure} />
      <p class="hint">
        <code>gateway admin-key create --name NAME</code> makes one. It opens operations in all tabs
        until the sign-in ends.
      </p>
    </div>
  );
}
