// Asks for the admin key, which the key of the sign-in is not.
import { useState } from "preact/hooks";

import { adminKeyForgottenBecause, useAdminKey } from "../../shell/session";

export function AdminSignIn() {
  const [key, setKey] = useState("");
  return (
    <div class="sign-in">
      {adminKeyForgottenBecause.value && <p role="alert">{adminKeyForgottenBecause.value}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          useAdminKey(key.trim());
        }}
      >
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
      <p class="hint">
        <code>gateway admin-key create --name NAME</code> makes one. It stays in this tab and ends
        with it.
      </p>
    </div>
  );
}
