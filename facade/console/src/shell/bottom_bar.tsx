// The bar at the foot of narrow windows; the last button shows the sidebar.
import { useLocation } from "preact-iso";
import { useEffect, useRef } from "preact/hooks";

import { shellWords } from "../words/shell";
import { Icon } from "./icons";
import { isShown, openPages } from "./pages";
import { SidebarContent } from "./sidebar";

const text = shellWords.pages;

const MAX_SHOWN = 4;

export function BottomBar() {
  const { path, url } = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.close(), [url]);
  return (
    <>
      <nav class="bottom-bar" aria-label={text.label}>
        {openPages().slice(0, MAX_SHOWN).map((page) => (
          <a
            key={page.path}
            href={page.path}
            aria-current={isShown(page.path, path) ? "page" : undefined}
          >
            <Icon name={page.icon} />
            {page.name}
          </a>
        ))}
        <button type="button" onClick={() => dialog.current?.showModal()}>
          <Icon name="menu" />
          {text.more}
        </button>
      </nav>
      <dialog
        ref={dialog}
        class="side-dialog"
        aria-label={text.menu}
        onClick={(event) => {
          // A click beside the panel is one on the dialog itself.
          if (event.target === dialog.current) dialog.current?.close();
        }}
      >
        <SidebarContent />
      </dialog>
    </>
  );
}
