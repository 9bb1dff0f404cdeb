// The title of the window.
import { useEffect } from "preact/hooks";

const CONSOLE = "Gateway console";

/** Set the title of the window while a page is shown, such as "Files · Gateway console". */
export function useTitle(name: string): void {
  useEffect(() => {
    document.title = name === "" ? CONSOLE : `${name} · ${CONSOLE}`;
    return () => {
      document.title = CONSOLE;
    };
  }, [name]);
}
