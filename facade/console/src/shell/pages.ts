// The pages of the console, in the order of the sidebar.
import type { IconName } from "./icons";
import { isAdministrator, mayAdministerAll } from "./session";

export interface PageLink {
  path: string;
  name: string;
  icon: IconName;
}

const PAGES: readonly PageLink[] = [
  { path: "/console", name: "Chat", icon: "chat" },
  { path: "/console/chats", name: "Chats", icon: "history" },
  { path: "/console/documents", name: "Documents", icon: "document" },
  { path: "/console/files", name: "Files", icon: "file" },
  { path: "/console/memory", name: "Memory", icon: "memory" },
  { path: "/console/overview", name: "Overview", icon: "usage" },
  { path: "/console/requests", name: "Requests", icon: "requests" },
  { path: "/console/people", name: "People and keys", icon: "people" },
  { path: "/console/providers", name: "Providers and models", icon: "operations" },
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
