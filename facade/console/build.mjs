// Builds the console into dist/: index.html, and its assets under names with hashes of their
// contents, each also compressed as .gz and .br.
import { readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

import { build } from "esbuild";

const FOLDER = import.meta.dirname;
// Built beside dist/ and renamed, so that an interrupted build is never served.
const DRAFT = join(FOLDER, "dist.new");
const BASE = "/console/assets/";
const COMPRESSIBLE = /\.(css|js|html|svg)$/;

const common = {
  absWorkingDir: FOLDER,
  bundle: true,
  minify: true,
  outdir: join(DRAFT, "assets"),
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  publicPath: BASE,
  metafile: true,
  logLevel: "warning",
};

// Returns the path in pages of what was built from an entry point.
function built(result, entry) {
  const [path] = Object.entries(result.metafile.outputs).find(
    ([, output]) => output.entryPoint === entry,
  );
  return BASE + basename(path);
}

async function compress(folder) {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!COMPRESSIBLE.test(name)) continue;
    const body = await readFile(path);
    await writeFile(`${path}.gz`, await promisify(gzip)(body, { level: 9 }));
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
    await writeFile(`${path}.br`, await promisify(brotliCompress)(body, quality));
  }
}

await rm(DRAFT, { recursive: true, force: true });
// KaTeX names each font in three formats; every browser that runs the console reads WOFF2.
const styles = await build({
  ...common,
  entryPoints: ["src/styles/main.css", "src/styles/maths.css"],
  loader: { ".woff2": "file", ".woff": "empty", ".ttf": "empty" },
});
const scripts = await build({
  ...common,
  entryPoints: ["src/main.tsx"],
  format: "esm",
  splitting: true,
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { MATHS_STYLES: JSON.stringify(built(styles, "src/styles/maths.css")) },
});
const page = (await readFile(join(FOLDER, "index.html"), "utf8"))
  .replace("{{styles}}", built(styles, "src/styles/main.css"))
  .replace("{{script}}", built(scripts, "src/main.tsx"));
await writeFile(join(DRAFT, "index.html"), page);
await compress(DRAFT);
await compress(join(DRAFT, "assets"));
await rm(join(FOLDER, "dist"), { recursive: true, force: true });
await rename(DRAFT, join(FOLDER, "dist"));
