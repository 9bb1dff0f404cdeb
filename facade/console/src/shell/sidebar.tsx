// The sidebar: pages, recent chats and documents, and who is signed in.
import { useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";

import { addressOf, currentRoot, latestChats, loadChats, rootOf, titleOf } from "../chats/chats";
import { words } from "../words/common";
import { shellWords } from "../words/shell";
import { Icon } from "./icons";
import { isShown, openPages } from "./pages";
import { loadDocuments, recentDocuments } from "./recent_documents";
import { session, signOut } from "./session";
import { openPalette } from "./palette";
import { THEMES, chooseTheme, theme } from "./theme";
import { version, loadVersion } from "./version";

const RECENT_CHATS = 8;
const RECENT_DOCUMENTS = 5;

/** Load what the sidebar lists, once for a sign-in. */
export function useSidebarData(): void {
  useEffect(() => {
    void loadChats();
    void loadDocuments();
    void loadVersion();
  }, []);
}

export function Sidebar() {
  return (
    <aside class="sidebar" aria-label={shellWords.console}>
      <SidebarContent />
    </aside>
  );
}

export function SidebarContent() {
  const { path } = useLocation();
  return (
    <div class="side">
      <a class="brand" href="/console">
        <Icon name="operations" /> {shellWords.name}
      </a>
      <nav aria-label={shellWords.pages.label}>
        <ul>
          {openPages().map((page) => (
            <li key={page.path}>
              <a href={page.path} aria-current={isShown(page.path, path) ? "page" : undefined}>
                <Icon name={page.icon} />
                <span>{page.name}</span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <RecentChats isChat={path === "/console"} />
      <RecentDocuments />
      <Foot />
    </div>
  );
}

function RecentChats({ isChat }: { isChat: boolean }) {
  const recent = latestChats.value?.slice(0, RECENT_CHATS) ?? [];
  return (
    <section class="recent" aria-label={shellWords.recent.chats}>
      <p class="heading">{shellWords.recent.chats}</p>
      <ul>
        <li>
          <a href="/console?chat=new">
            <Icon name="plus" /> <span>{shellWords.recent.newChat}</span>
          </a>
        </li>
        {recent.map((chat) => (
          <li key={chat.id}>
            <a
              href={addressOf(chat.id)}
              title={titleOf(chat)}
              aria-current={isChat && currentRoot.value === rootOf(chat) ? "true" : undefined}
            >
              <span>{titleOf(chat)}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function RecentDocuments() {
  const { path } = useLocation();
  const recent = recentDocuments.value.slice(0, RECENT_DOCUMENTS);
  if (recent.length === 0) return null;
  return (
    <section class="recent" aria-label={shellWords.recent.documents}>
      <p class="heading">{shellWords.recent.documentsHeading}</p>
      <ul>
        {recent.map(({ id, name }) => {
          const to = `/console/documents/${encodeURIComponent(id)}`;
          return (
            <li key={id}>
              <a href={to} title={name} aria-current={path === to ? "true" : undefined}>
                <span>{name}</span>
              </a>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Foot() {
  const { user = "", role = "user" } = session.value ?? {};
  return (
    <div class="foot">
      <div class="themes" role="group" aria-label={shellWords.theme.label}>
        {THEMES.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={theme.value === name}
            onClick={() => chooseTheme(name)}
          >
            {shellWords.theme.choices[name]}
          </button>
        ))}
      </div>
      <div class="actions">
        <button type="button" class="quiet" onClick={openPalette}>
          {shellWords.goTo}
        </button>
        <button type="button" class="quiet" onClick={() => void signOut()}>
          {shellWords.signOut}
        </button>
      </div>
      <p>{shellWords.signedInAs(user, role === "user" ? "" : words.roles[role], version.value)}</p>
    </div>
  );
}
