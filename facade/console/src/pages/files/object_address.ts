// Content under an address that elements of media show.
import { useEffect, useState } from "preact/hooks";

/** Return the address of content, "" until there is some. */
export function useObjectAddress(content: Blob | undefined): string {
  const [address, setAddress] = useState("");
  useEffect(() => {
    if (content === undefined) return;
    const made = URL.createObjectURL(content);
    setAddress(made);
    return () => {
      URL.revokeObjectURL(made);
      setAddress("");
    };
  }, [content]);
  return address;
}
