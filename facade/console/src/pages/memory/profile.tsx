// The facts that the gateway remembers about the caller, in sentences; each is corrected and deleted alone.
import { useState } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { ConfirmButton } from "../../parts/confirm";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { memoryWords } from "../../words/memory";
import { type Fact, correctFact, deleteFact, deleteProfile, getProfile } from "./memories";

const text = memoryWords.profile;
const MAX_VALUE = 200;

export function Profile() {
  const { data: facts, error, reload } = useLoaded(getProfile, []);
  return (
    <section aria-labelledby="profile">
      <h2 id="profile">{text.title}</h2>
      <Failure error={error} />
      {facts?.length === 0 && (
        <Empty title={text.none}>
          <p>{text.noneHint}</p>
        </Empty>
      )}
      {facts !== undefined && facts.length > 0 && (
        <>
          <ul class="cards" aria-label={text.facts}>
            {facts.map((fact) => (
              <li key={fact.id}>
                <FactView fact={fact} onChanged={reload} />
              </li>
            ))}
          </ul>
          <p class="actions">
            <ConfirmButton
              label={text.removeAll}
              question={text.removeAllQuestion}
              onConfirm={async () => {
                await deleteProfile();
                reload();
              }}
            />
          </p>
        </>
      )}
    </section>
  );
}

function FactView({ fact, onChanged }: { fact: Fact; onChanged: () => void }) {
  const [isEdited, setEdited] = useState(false);
  const { error, run } = useActions();
  const sentence = text.sentence(fact.topic, fact.sub_topic, fact.value);
  return (
    <article aria-label={sentence}>
      <p class="fact">{sentence}</p>
      <p class="hint">
        {text.since(when(fact.updated_at))}
        {fact.sources.slice(0, 3).map(({ memory_id: id, turn }) => (
          <>
            {" · "}
            <a href={`/console/memory?${new URLSearchParams({ id })}`}>{text.source(id, turn)}</a>
          </>
        ))}
      </p>
      {isEdited && (
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            const data = new FormData(event.currentTarget as HTMLFormElement);
            void run(async () => {
              await correctFact(fact.id, String(data.get("value") ?? "").trim());
              setEdited(false);
              onChanged();
            });
          }}
          onKeyDown={(event) => {
            if (event.key === "Escape") setEdited(false);
          }}
        >
          <label>
            {text.about(fact.topic, fact.sub_topic)}
            <input
              name="value"
              required
              maxLength={MAX_VALUE}
              autocomplete="off"
              defaultValue={fact.value}
              ref={(input) => input?.focus()}
            />
          </label>
          <button>{text.save}</button>
          <button type="button" class="quiet" onClick={() => setEdited(false)}>
            {text.cancel}
          </button>
        </form>
      )}
      <div class="actions">
        {!isEdited && (
          <button type="button" class="quiet" onClick={() => setEdited(true)}>
            {text.edit}
            <span class="visually-hidden"> {sentence}</span>
          </button>
        )}
        <ConfirmButton
          label={text.remove}
          name={sentence}
          question={text.removeQuestion(sentence)}
          onConfirm={async () => {
            await deleteFact(fact.id);
            onChanged();
          }}
        />
      </div>
      <Failure error={error} />
    </article>
  );
}
