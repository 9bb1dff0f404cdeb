// Builds the gallery of components into gallery/ or the folder that is named, a page that a browser
// opens as a file.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { build } from "esbuild";

const TARGET = process.argv[2] ?? join(import.meta.dirname, "gallery");
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Components of the console</title>
    <link rel="stylesheet" href="gallery.css">
    <script defer src="main.js"></script>
  </head>
  <body></body>
</html>
`;

await build({
  absWorkingDir: import.meta.dirname,
  bundle: true,
  outdir: TARGET,
  entryPoints: ["src/gallery/main.tsx", "src/gallery/gallery.css"],
  entryNames: "[name]",
  // A page that is a file may load scripts, but no modules.
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".woff2": "file", ".woff": "empty", ".ttf": "empty" },
  define: { MATHS_STYLES: '"gallery.css"' },
  logLevel: "warning",
});
await writeFile(join(TARGET, "index.html"), PAGE);
