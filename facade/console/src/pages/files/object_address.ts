// The content of a file under an address that elements of media show.
import { useEffect, useState } from "preact/hooks";

import { useLoaded } from "../../parts/loading";
import { type StoreFile, contentOf } from "./store";

/** Return the address of a file's content, "" until it is loaded. */
export function useObjectAddress(file: StoreFile): { address: string; error: unknown } {
  const { data, error } = useLoaded((signal) => contentOf(file, { signal }), [file.id]);
  const [address, setAddress] = useState("");
  useEffect(() => {
    if (data === undefined) return;
    const made = URL.createObjectURL(data);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [data]);
  return { address, error };
}
