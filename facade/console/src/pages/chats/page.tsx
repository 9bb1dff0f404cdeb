// All chats of the user: searched by their titles, renamed, exported and deleted.
import { useState } from "preact/hooks";

import {
  addressOf,
  chatsProblem,
  deleteChat,
  furtherChats,
  latestChats,
  loadChats,
  renameChat,
  rootOf,
  titleOf,
} from "../../chats/chats";
import type { Conversation } from "../../chats/conversations";
import { useActions } from "../../parts/actions";
import { ConfirmButton } from "../../parts/confirm";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { save } from "../../parts/save";
import { useTitle } from "../../parts/title";
import { chatsWords as text } from "../../words/chats";
import { words } from "../../words/common";
import { exported } from "./export";

export default function Chats() {
  useTitle(text.title);
  const [query, setQuery] = useState("");
  const parts = query.toLowerCase().split(/\s+/);
  const shown = latestChats.value?.filter((chat) => {
    const title = titleOf(chat).toLowerCase();
    return parts.every((part) => title.includes(part));
  });

  /** Load all chats before the first search, so that it finds the oldest, too. */
  async function loadAll(): Promise<void> {
    while (furtherChats.value !== "" && chatsProblem.value === undefined) await loadChats(true);
  }

  return (
    <>
      <div class="page-head">
        <h1>{text.title}</h1>
        <a class="button" href="/console?chat=new">
          {text.newChat}
        </a>
      </div>
      <label class="search">
        {text.search}
        <input
          type="search"
          placeholder={text.searchHint}
          value={query}
          onFocus={() => void loadAll()}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
      </label>
      <Failure error={chatsProblem.value} />
      {latestChats.value?.length === 0 && (
        <Empty title={text.none}>
          <p>
            {text.noneHint[0]}
            <a href="/console">{text.noneHint[1]}</a>
            {text.noneHint[2]}
          </p>
        </Empty>
      )}
      {latestChats.value !== undefined && latestChats.value.length > 0 && shown?.length === 0 && (
        <Empty title={text.noneFound} />
      )}
      <ul class="cards" aria-label={text.title}>
        {shown?.map((chat) => (
          <li key={rootOf(chat)}>
            <Card chat={chat} />
          </li>
        ))}
      </ul>
      {furtherChats.value !== "" && (
        <button type="button" class="quiet" onClick={() => void loadChats(true)}>
          {text.more}
        </button>
      )}
    </>
  );
}

function Card({ chat }: { chat: Conversation }) {
  const [isRenaming, setRenaming] = useState(false);
  const { error, run } = useActions();
  const title = titleOf(chat);

  return (
    <article aria-label={title}>
      {isRenaming ? (
        <Rename
          title={title}
          onSave={(changed) =>
            void run(async () => {
              await renameChat(chat, changed);
              setRenaming(false);
            })
          }
          onCancel={() => setRenaming(false)}
        />
      ) : (
        <h2>
          <a href={addressOf(chat.id)}>{title}</a>
        </h2>
      )}
      <p class="hint">
        {when(chat.created_at)}
        {chat.metadata["model"] && ` · ${chat.metadata["model"]}`}
      </p>
      <div class="actions">
        <button type="button" class="quiet small" onClick={() => setRenaming(true)}>
          {text.rename}
          <span class="visually-hidden"> {title}</span>
        </button>
        <button
          type="button"
          class="quiet small"
          onClick={() =>
            void run(async () => {
              save(new Blob([await exported(chat)]), `${title.replaceAll(/[/\\:]/g, " ")}.md`);
            })
          }
        >
          {text.export}
          <span class="visually-hidden"> {title}</span>
        </button>
        <ConfirmButton
          label={text.remove}
          name={title}
          question={text.removeQuestion(title)}
          onConfirm={() => deleteChat(chat)}
        />
      </div>
      <Failure error={error} />
    </article>
  );
}

function Rename({
  title,
  onSave,
  onCancel,
}: {
  title: string;
  onSave: (title: string) => void;
  onCancel: () => void;
}) {
  return (
    <form
      class="actions"
      onSubmit={(event) => {
        event.preventDefault();
        const entered = new FormData(event.currentTarget).get("title");
        onSave(String(entered ?? "").trim() || title);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onCancel();
      }}
    >
      <label>
        {text.name}
        <input name="title" maxLength={80} defaultValue={title} ref={(field) => field?.focus()} />
      </label>
      <button>{words.save}</button>
      <button type="button" class="quiet" onClick={onCancel}>
        {words.cancel}
      </button>
    </form>
  );
}
