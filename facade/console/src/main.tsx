import { render } from "preact";

import { App } from "./shell/app";
import { signInFromLink } from "./shell/session";

const root = document.getElementById("console");
if (root === null) throw new Error("index.html has no element for the console");
await signInFromLink();
render(<App />, root);
