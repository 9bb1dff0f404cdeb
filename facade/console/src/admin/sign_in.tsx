// Asks for an admin key, where the role of the person opens no administration.
import { useState } from "preact/hooks";

import { ApiError, toError } from "../api/client";
import { Failure } from "../parts/failure";
import { session, unlock } from "../shell/session";
import { words } from "../words/common";
import { shellWords } from "../words/shell";

const text = shellWords.admin;

export function AdminSignIn() {
  const [key, setKey] = useState("");
  const [failure, setFailure] = useState<ApiError>();
  if (session.value?.may_unlock === false) {
    return <p>{text.notYours}</p>;
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
      setFailure(new ApiError(words.noAnswer, 0));
    }
  }

  return (
    <div class="sign-in">
      <form onSubmit={submit}>
        <label>
          {text.key}
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button>{text.submit}</button>
      </form>
      <Failure error={failure} />
      <p class="hint">
        <code>gateway admin-key create --name NAME</code>
        {text.hint}
      </p>
    </div>
  );
}
