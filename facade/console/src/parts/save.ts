// Files that the browser saves.

/** Let the browser save a blob under a name. */
export function save(content: Blob, name: string): void {
  // As bytes, so that the browser never shows it as a page of this origin.
  const address = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
