/** Whose requests and usage a page shows. */
export type Scope = "mine" | "everyone";
