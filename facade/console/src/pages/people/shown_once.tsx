// Secrets that an answer has this once: new keys, and links of invitations.
import { CopyButton } from "../../parts/copy";
import { words } from "../../words/common";
import { peopleWords } from "../../words/people";

/** A secret with a button that copies it, until its reader hides it; nothing without one. */
export function ShownOnce({
  secret,
  name,
  hint,
  onDone,
}: {
  secret: string | undefined;
  name: string;
  hint: string;
  onDone: () => void;
}) {
  return (
    <div role="status">
      {secret !== undefined && (
        <div class="secret">
          <p>
            <strong>{hint}</strong>
          </p>
          <p class="actions">
            <code>{secret}</code>
            <CopyButton text={secret} label={words.copy} name={name} />
            <button type="button" class="quiet small" onClick={onDone}>
              {peopleWords.keys.hide}
            </button>
          </p>
        </div>
      )}
    </div>
  );
}
