// The dialog that names a document, and says who may read and edit it.
import { useRef, useState } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { words } from "../../words/common";
import { editorWords } from "../../words/documents/editor";
import { shareWords } from "../../words/documents/share";
import { call } from "./articles";
import type { Article } from "./types";

interface Group {
  readonly group_id: number;
  readonly name: string;
  readonly isCreator: boolean;
  readonly members: readonly { user: string; name: string; isCreator: boolean }[];
}

interface Groups {
  readonly user: string;
  readonly groups: readonly Group[];
}

export function ShareButton({
  article,
  onChanged,
}: {
  article: Article;
  onChanged: (changed: Article) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isShown, setShown] = useState(false);
  return (
    <>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          setShown(true);
          dialog.current?.showModal();
        }}
      >
        {editorWords.share}
      </button>
      <dialog ref={dialog} class="share" aria-label={shareWords.title} onClose={() => setShown(false)}>
        {isShown && <Sharing article={article} onChanged={onChanged} />}
        <div class="actions">
          <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
            {words.close}
          </button>
        </div>
      </dialog>
    </>
  );
}

function Sharing({
  article,
  onChanged,
}: {
  article: Article;
  onChanged: (changed: Article) => void;
}) {
  const { error, run: attempt } = useActions();
  const { data, error: unread, reload } = useLoaded(
    (signal) => call<Groups>("group/list", {}, signal),
    [],
  );
  const docId = article.outer_id;

  async function run(act: () => Promise<unknown>): Promise<void> {
    await attempt(act);
    reload();
  }

  async function change(path: string, body: object): Promise<void> {
    onChanged((await call<{ article: Article }>(path, { docId, ...body })).article);
  }

  const group = data?.groups.find((one) => one.group_id === article.group);
  return (
    <>
      <h2>{shareWords.of(article.name)}</h2>
      <Failure error={error ?? unread} />
      <OneField
        label={shareWords.name}
        action={shareWords.rename}
        initial={article.name}
        onSubmit={(name) => run(() => change("doc/rename", { name }))}
      />
      <div class="actions">
        <label>
          {shareWords.group}
          <select
            value={String(article.group)}
            onChange={(event) => {
              const chosen = Number(event.currentTarget.value);
              void run(() => change("doc/share", { group: chosen }));
            }}
          >
            <option value="0">{shareWords.private}</option>
            {data?.groups.map((one) => (
              <option key={one.group_id} value={String(one.group_id)}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
        {article.group !== 0 && (
          <label>
            {shareWords.who}
            <select
              value={article.sharePermission.permission}
              onChange={(event) => {
                const permission = event.currentTarget.value;
                void run(() => change("doc/share", { permission }));
              }}
            >
              {Object.entries(shareWords.permissions).map(([permission, name]) => (
                <option key={permission} value={permission}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {group !== undefined && <Members group={group} own={data?.user ?? ""} run={run} />}
      <OneField
        label={shareWords.newGroup}
        action={shareWords.create}
        onSubmit={(name) => run(() => call("group/create", { name }))}
      />
      <p class="hint">
        {shareWords.ownId[0]}
        <code>{data?.user}</code>
        {shareWords.ownId[1]}
      </p>
    </>
  );
}

function Members({
  group,
  own,
  run,
}: {
  group: Group;
  own: string;
  run: (act: () => Promise<unknown>) => Promise<void>;
}) {
  const id = group.group_id;
  return (
    <section aria-label={shareWords.members(group.name)}>
      <h3>{shareWords.members(group.name)}</h3>
      <ul class="members">
        {group.members.map((member) => (
          <li key={member.user}>
            {member.name || shareWords.deletedUser} {member.isCreator && <em>{shareWords.creator}</em>}{" "}
            {group.isCreator && member.user !== own && (
              <button
                type="button"
                class="danger"
                onClick={() => run(() => call("group/remove", { group: id, user: member.user }))}
              >
                {shareWords.remove}<span class="visually-hidden"> {member.name}</span>
              </button>
            )}
          </li>
        ))}
      </ul>
      {group.isCreator && (
        <OneField
          label={shareWords.userToAdd}
          action={shareWords.add}
          onSubmit={(user) => run(() => call("group/add", { group: id, user }))}
        />
      )}
    </section>
  );
}

function OneField({
  label,
  action,
  initial = "",
  onSubmit,
}: {
  label: string;
  action: string;
  initial?: string;
  onSubmit: (text: string) => Promise<void>;
}) {
  const [text, setText] = useState(initial);
  return (
    <form
      class="actions"
      aria-label={label}
      onSubmit={async (event) => {
        event.preventDefault();
        await onSubmit(text.trim());
        if (initial === "") setText("");
      }}
    >
      <label>
        {label}
        <input
          maxLength={200}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="quiet" disabled={text.trim() === "" || text === initial}>
        {action}
      </button>
    </form>
  );
}
