// Sends the requests of the forms in /docs, and shows what comes back as it arrives.
"use strict";

const MAX_SHOWN = 1_000_000; // characters of a body
const TEXT = /^text\/|json/;
const running = new WeakMap(); // the controller of the request of each form
const keys = { $GATEWAY_KEY: element("key"), $ADMIN_KEY: element("admin-key") };

function element(id) {
  return document.getElementById(id);
}

// Who is signed in to the console needs no key here.
let csrfToken = "";
const loaded = loadSession();

async function loadSession() {
  try {
    const { session } = await (await fetch("/console/session", { cache: "no-store" })).json();
    if (!session) return;
    csrfToken = session.csrf_token;
    for (const field of Object.values(keys)) field.placeholder = `signed in as ${session.user}`;
  } catch {
    // Keys are entered.
  }
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  if (running.has(form)) running.get(form).abort();
  else send(form);
});

async function send(form) {
  const control = new AbortController();
  running.set(form, control);
  const button = form.querySelector("button");
  const status = form.querySelector("[role=status]");
  const shown = form.querySelector("pre");
  button.textContent = "Stop";
  status.textContent = "Waiting…";
  shown.textContent = "";
  shown.hidden = true;
  const started = performance.now();
  try {
    await loaded;
    const sent = headers(form);
    const response = await fetch(address(form), {
      method: form.dataset.method,
      headers: sent,
      body: body(form),
      signal: control.signal,
      cache: "no-store",
      credentials: sent.has("x-csrf-token") ? "same-origin" : "omit",
    });
    const passed = Math.round(performance.now() - started);
    status.textContent = `HTTP ${response.status} after ${passed} ms`;
    shown.hidden = false;
    for (const [name, value] of response.headers) shown.append(`${name}: ${value}\n`);
    shown.append("\n");
    await show(response, shown);
  } catch (error) {
    const reason = control.signal.aborted ? "Stopped" : `The request failed: ${error.message}`;
    status.textContent = shown.hidden ? reason : `${status.textContent}. ${reason}`;
  } finally {
    running.delete(form);
    button.textContent = "Send";
  }
}

// Return the address of a request, from the fields of its path and query.
function address(form) {
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const field of form.querySelectorAll("[data-in]")) {
    const value = field.value.trim();
    if (field.dataset.in === "path") {
      path = path.replace(`{${field.name}}`, () => encodeURIComponent(value));
    } else if (field.dataset.in === "query" && value) query.append(field.name, value);
  }
  return query.size > 0 ? `${path}?${query}` : path;
}

function headers(form) {
  const sent = new Headers();
  for (const [name, value] of Object.entries(JSON.parse(form.dataset.headers))) {
    const variable = /\$[A-Z_]+/.exec(value)?.[0];
    const key = keys[variable]?.value.trim();
    // The session of the console stands for a key that is not entered.
    if (key === "" && csrfToken) sent.set("x-csrf-token", csrfToken);
    else sent.set(name, variable ? value.replace(variable, () => key) : value);
  }
  for (const field of form.querySelectorAll("[data-in=header]")) {
    if (field.value.trim()) sent.set(field.name, field.value.trim());
  }
  return sent;
}

function body(form) {
  const text = form.querySelector("textarea");
  if (text) return form.querySelector("[name=streamed]")?.checked ? streamed(text.value) : text.value;
  if (!form.querySelector("[type=file]")) return undefined;
  const parts = new FormData();
  for (const field of form.querySelectorAll("[data-in=part]")) {
    if (field.type !== "file") parts.append(field.name, field.value);
    else if (field.files[0]) parts.append(field.name, field.files[0]);
  }
  return parts;
}

// What is not JSON is sent as it is: the gateway says what is wrong with it.
function streamed(text) {
  try {
    return JSON.stringify({ ...JSON.parse(text), stream: true });
  } catch {
    return text;
  }
}

async function show(response, shown) {
  const type = response.headers.get("content-type") ?? "";
  if (!response.body) return;
  if (!TEXT.test(type)) {
    const size = (await response.arrayBuffer()).byteLength;
    shown.append(`${size} bytes of ${type || "no type"}`);
    return;
  }
  const content = shown.appendChild(document.createTextNode(""));
  for await (const piece of pieces(response.body.pipeThrough(new TextDecoderStream()))) {
    content.appendData(piece.slice(0, MAX_SHOWN - content.length));
  }
  if (content.length === MAX_SHOWN) shown.append("\n… (only the beginning is shown)");
  else if (type.includes("json")) content.data = indented(content.data);
}

async function* pieces(stream) {
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
