import { useLocation } from "preact-iso";

import { signOut } from "./session";

const PAGES = [
  ["/console", "Playground"],
  ["/console/files", "Files"],
  ["/console/memory", "Memory"],
  ["/console/documents", "Documents"],
  ["/console/usage", "Usage"],
  ["/console/operations", "Operations"],
] as const;

export function Navigation() {
  const { path } = useLocation();
  return (
    <header class="top">
      <nav aria-label="Pages">
        {PAGES.map(([to, name]) => (
          <a key={to} href={to} aria-current={isShown(to, path) ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <button type="button" class="quiet" onClick={() => signOut()}>
        Sign out
      </button>
    </header>
  );
}

function isShown(page: string, path: string): boolean {
  return page === "/console" ? path === page : path === page || path.startsWith(`${page}/`);
}
