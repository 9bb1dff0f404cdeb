import { render } from "preact";

import { App } from "./shell/app";
import { loadSession } from "./shell/session";
import { followTheme } from "./shell/theme";

const root = document.getElementById("console");
if (root === null) throw new Error("index.html has no element for the console");
followTheme();
await loadSession();
render(<App />, root);
