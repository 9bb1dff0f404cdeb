// Addresses that texts of models and users may link to.
const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** Return an address that is safe to link to; undefined for scripts, data and the gateway's own. */
export function safeAddress(address: string): string | undefined {
  // Without a base: an address relative to the console would be one of its own pages.
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return undefined;
  }
  return SCHEMES.has(url.protocol) ? url.href : undefined;
}
