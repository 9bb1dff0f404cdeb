// Languages whose code is highlighted: their names, and their grammars, each loaded when it is first
// needed.
import type { LanguageFn } from "highlight.js";

interface Language {
  name: string;
  load: () => Promise<{ default: LanguageFn }>;
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  bash: { name: "Bash", load: () => import("highlight.js/lib/languages/bash") },
  c: { name: "C", load: () => import("highlight.js/lib/languages/c") },
  cpp: { name: "C++", load: () => import("highlight.js/lib/languages/cpp") },
  csharp: { name: "C#", load: () => import("highlight.js/lib/languages/csharp") },
  css: { name: "CSS", load: () => import("highlight.js/lib/languages/css") },
  diff: { name: "Diff", load: () => import("highlight.js/lib/languages/diff") },
  dockerfile: { name: "Dockerfile", load: () => import("highlight.js/lib/languages/dockerfile") },
  go: { name: "Go", load: () => import("highlight.js/lib/languages/go") },
  graphql: { name: "GraphQL", load: () => import("highlight.js/lib/languages/graphql") },
  html: { name: "HTML", load: () => import("highlight.js/lib/languages/xml") },
  ini: { name: "INI", load: () => import("highlight.js/lib/languages/ini") },
  java: { name: "Java", load: () => import("highlight.js/lib/languages/java") },
  javascript: { name: "JavaScript", load: () => import("highlight.js/lib/languages/javascript") },
  json: { name: "JSON", load: () => import("highlight.js/lib/languages/json") },
  kotlin: { name: "Kotlin", load: () => import("highlight.js/lib/languages/kotlin") },
  latex: { name: "LaTeX", load: () => import("highlight.js/lib/languages/latex") },
  lua: { name: "Lua", load: () => import("highlight.js/lib/languages/lua") },
  makefile: { name: "Makefile", load: () => import("highlight.js/lib/languages/makefile") },
  markdown: { name: "Markdown", load: () => import("highlight.js/lib/languages/markdown") },
  nginx: { name: "nginx", load: () => import("highlight.js/lib/languages/nginx") },
  perl: { name: "Perl", load: () => import("highlight.js/lib/languages/perl") },
  php: { name: "PHP", load: () => import("highlight.js/lib/languages/php") },
  powershell: { name: "PowerShell", load: () => import("highlight.js/lib/languages/powershell") },
  protobuf: { name: "Protobuf", load: () => import("highlight.js/lib/languages/protobuf") },
  python: { name: "Python", load: () => import("highlight.js/lib/languages/python") },
  r: { name: "R", load: () => import("highlight.js/lib/languages/r") },
  ruby: { name: "Ruby", load: () => import("highlight.js/lib/languages/ruby") },
  rust: { name: "Rust", load: () => import("highlight.js/lib/languages/rust") },
  scala: { name: "Scala", load: () => import("highlight.js/lib/languages/scala") },
  shell: { name: "Shell (session)", load: () => import("highlight.js/lib/languages/shell") },
  sql: { name: "SQL", load: () => import("highlight.js/lib/languages/sql") },
  swift: { name: "Swift", load: () => import("highlight.js/lib/languages/swift") },
  toml: { name: "TOML", load: () => import("highlight.js/lib/languages/ini") },
  typescript: { name: "TypeScript", load: () => import("highlight.js/lib/languages/typescript") },
  xml: { name: "XML", load: () => import("highlight.js/lib/languages/xml") },
  yaml: { name: "YAML", load: () => import("highlight.js/lib/languages/yaml") },
};

// What models and people call them too.
const ALIASES: Readonly<Record<string, string>> = {
  "c#": "csharp",
  "c++": "cpp",
  cc: "cpp",
  cjs: "javascript",
  conf: "ini",
  console: "shell",
  cs: "csharp",
  docker: "dockerfile",
  golang: "go",
  h: "c",
  hpp: "cpp",
  js: "javascript",
  json5: "json",
  jsonc: "json",
  jsonl: "json",
  jsx: "javascript",
  kt: "kotlin",
  make: "makefile",
  md: "markdown",
  mjs: "javascript",
  patch: "diff",
  proto: "protobuf",
  ps1: "powershell",
  py: "python",
  python3: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  svg: "xml",
  tex: "latex",
  ts: "typescript",
  tsx: "typescript",
  yml: "yaml",
  zsh: "bash",
};

/** Return the key of a language in the list, by what a text calls it; undefined for others. */
export function languageKey(called: string): string | undefined {
  const key = called.toLowerCase();
  const named = Object.hasOwn(ALIASES, key) ? ALIASES[key]! : key;
  return Object.hasOwn(LANGUAGES, named) ? named : undefined;
}

/** Return the name of a language; what a text calls it where it is not in the list. */
export function languageName(called: string): string {
  const key = languageKey(called);
  return key === undefined ? called : LANGUAGES[key]!.name;
}

/** Load the grammar of a language by its key. */
export async function loadGrammar(key: string): Promise<LanguageFn> {
  return (await LANGUAGES[key]!.load()).default;
}
