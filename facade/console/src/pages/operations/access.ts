// Who may see what belongs to everyone.
import { computed } from "@preact/signals";

import { adminKey } from "../../shell/session";

/** Whether this tab may call the endpoints of administration. */
export const isAdministrator = computed(() => adminKey.value !== "");

/** Whose requests and usage a page shows. */
export type Scope = "mine" | "everyone";
