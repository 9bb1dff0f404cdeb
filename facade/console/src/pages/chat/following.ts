// Keeping the end of a growing conversation in view.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

// Pixels from the end of the page within which somebody reads the end.
const NEAR = 120;

/** Scroll to the end of the page whenever `content` changes, unless somebody has scrolled away. */
export function useFollowing(content: unknown): void {
  const isAtEnd = useRef(true);
  useEffect(() => {
    const look = (): void => {
      const left = document.documentElement.scrollHeight - window.innerHeight - window.scrollY;
      isAtEnd.current = left < NEAR;
    };
    look();
    window.addEventListener("scroll", look, { passive: true });
    return () => window.removeEventListener("scroll", look);
  }, []);
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    // A page that opens begins at its top.
    if (!isFirst.current && isAtEnd.current) {
      window.scrollTo({ top: document.documentElement.scrollHeight });
    }
    isFirst.current = false;
  }, [content]);
}
