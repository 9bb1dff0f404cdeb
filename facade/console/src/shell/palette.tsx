// The command palette (Ctrl+K): pages, chats, documents and actions by name.
import { signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useRef, useState } from "preact/hooks";

import { addressOf, latestChats, titleOf } from "../chats/chats";
import { shellWords } from "../words/shell";
import { openPages } from "./pages";
import { recentDocuments } from "./recent_documents";
import { signOut } from "./session";
import { openKeys } from "./keys";
import { THEMES, chooseTheme } from "./theme";

const text = shellWords.palette;
const { kinds } = text;

const MAX_SHOWN = 50;

interface Command {
  name: string;
  kind: string;
  run: () => void;
}

const isOpen = signal(false);

export function openPalette(): void {
  isOpen.value = true;
}

export function Palette() {
  if (!isOpen.value) return null;
  return <OpenPalette />;
}

function OpenPalette() {
  const { route } = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [place, setPlace] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  const parts = query.toLowerCase().split(/\s+/);
  const commands = all(route)
    .filter(({ name, kind }) => {
      const searched = `${kind} ${name}`.toLowerCase();
      return parts.every((part) => searched.includes(part));
    })
    .slice(0, MAX_SHOWN);
  const chosen = commands[Math.min(place, commands.length - 1)];

  function run(command: Command | undefined): void {
    if (command === undefined) return;
    dialog.current?.close();
    command.run();
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Enter") run(chosen);
    else if (event.key === "ArrowDown") setPlace(Math.min(place + 1, commands.length - 1));
    else if (event.key === "ArrowUp") setPlace(Math.max(place - 1, 0));
    else return;
    event.preventDefault();
  }

  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label={text.title}
      onClose={() => {
        isOpen.value = false;
      }}
    >
      <input
        role="combobox"
        aria-label={text.field}
        placeholder={text.hint}
        aria-expanded={true}
        aria-controls="commands"
        aria-activedescendant={chosen && `command-${commands.indexOf(chosen)}`}
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setPlace(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="commands" role="listbox" aria-label={text.commands}>
        {commands.map((command, index) => (
          <li
            key={`${command.kind} ${command.name} ${index}`}
            id={`command-${index}`}
            role="option"
            aria-selected={command === chosen}
            onClick={() => run(command)}
          >
            <span>{command.name}</span>
            <span class="hint">{command.kind}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}

function all(route: (url: string) => void): Command[] {
  const link = (kind: string, name: string, to: string): Command => ({
    name,
    kind,
    run: () => route(to),
  });
  return [
    ...openPages().map(({ name, path }) => link(kinds.page, name, path)),
    link(kinds.action, shellWords.recent.newChat, "/console?chat=new"),
    ...(latestChats.value ?? []).map((chat) => link(kinds.chat, titleOf(chat), addressOf(chat.id))),
    ...recentDocuments.value.map(({ id, name }) =>
      link(kinds.document, name, `/console/documents/${encodeURIComponent(id)}`),
    ),
    ...THEMES.map((name) => ({
      name: shellWords.theme.choose(shellWords.theme.choices[name]),
      kind: kinds.action,
      run: () => chooseTheme(name),
    })),
    { name: shellWords.keys.title, kind: kinds.action, run: openKeys },
    { name: shellWords.signOut, kind: kinds.action, run: () => void signOut() },
  ];
}
