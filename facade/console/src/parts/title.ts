// The title of the window.
import { useEffect } from "preact/hooks";

import { words } from "../words/common";

/** Set the title of the window while a page is shown, such as "Files · Gateway console". */
export function useTitle(name: string): void {
  useEffect(() => {
    document.title = name === "" ? words.console : `${name} · ${words.console}`;
    return () => {
      document.title = words.console;
    };
  }, [name]);
}
