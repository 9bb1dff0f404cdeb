// Images of this visit, which the browser shows without asking the file store.
const addresses = new Map<string, string>();

/** Keep an image for as long as the page is open. */
export function keepPreview(fileId: string, file: File): void {
  addresses.set(fileId, URL.createObjectURL(file));
}

/** Return an address for an image; undefined for one of an earlier visit. */
export function previewOf(fileId: string): string | undefined {
  return addresses.get(fileId);
}

/** Release the images. */
export function dropPreviews(): void {
  for (const address of addresses.values()) URL.revokeObjectURL(address);
  addresses.clear();
}
