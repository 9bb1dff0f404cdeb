// The pages of the console, in the order of the sidebar.
import { shellWords } from "../words/shell";
import type { IconName } from "./icons";
import { isAdministrator, mayAdministerAll } from "./session";

const { pages } = shellWords;

export interface PageLink {
  path: string;
  name: string;
  icon: IconName;
}

const PAGES: readonly PageLink[] = [
  { path: "/console", name: pages.chat, icon: "chat" },
  { path: "/console/chats", name: pages.chats, icon: "history" },
  { path: "/console/documents", name: pages.documents, icon: "document" },
  { path: "/console/files", name: pages.files, icon: "file" },
  { path: "/console/memory", name: pages.memory, icon: "memory" },
  { path: "/console/overview", name: pages.overview, icon: "usage" },
  { path: "/console/requests", name: pages.requests, icon: "requests" },
  { path: "/console/people", name: pages.people, icon: "people" },
  { path: "/console/providers", name: pages.providers, icon: "operations" },
];

/** Return the pages that the role of the person opens. */
export function openPages(): readonly PageLink[] {
  return PAGES.filter(({ path }) => {
    if (path === "/console/people") return isAdministrator.value || mayAdministerAll.value;
    return path !== "/console/providers" || mayAdministerAll.value;
  });
}

/** Return whether a page is the one of a path, or the page above it. */
export function isShown(page: string, path: string): boolean {
  return page === "/console" ? path === page : path === page || path.startsWith(`${page}/`);
}
