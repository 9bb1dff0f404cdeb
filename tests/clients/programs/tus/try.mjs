// The tus client: whole uploads and pieces, creation with content, other methods, interruptions.

import { Readable } from "node:stream";
import * as tus from "tus-js-client";
import { address, check, key, run } from "../steps.mjs";

const content = Buffer.alloc(5_000_000, "tides");
const headers = { Authorization: `Bearer ${key}` };
const piece = { chunkSize: 1_000_000 };

// Upload content; returns the upload, the methods that were sent, and the id of the file.
async function upload(source, options = {}, begin = (made) => made.start()) {
  const sent = [];
  let fileId;
  const made = await new Promise((resolve, reject) => {
    const one = new tus.Upload(source, {
      endpoint: `${address}/v1/uploads/tus`,
      headers,
      metadata: { filename: "grüße.bin", filetype: "application/x-notes", purpose: "user_data" },
      retryDelays: null,
      onBeforeRequest: (request) => sent.push(request.getMethod()),
      onAfterResponse: (_, response) => {
        fileId = response.getHeader("x-gateway-file-id") ?? fileId;
      },
      onError: reject,
      onSuccess: () => resolve(one),
      ...options,
    });
    begin(one);
  });
  return { made, sent, fileId };
}

async function checkFile(fileId, expected = content) {
  const file = await fetch(`${address}/v1/files/${fileId}`, { headers });
  check((await file.json()).filename === "grüße.bin", fileId);
  const answer = await fetch(`${address}/v1/files/${fileId}/content`, { headers });
  check(expected.equals(Buffer.from(await answer.arrayBuffer())), fileId);
}

const steps = {
  "uploads at once": async () => {
    const { sent, fileId } = await upload(content);
    check(sent.join() === "POST,PATCH", sent);
    await checkFile(fileId);
  },
  "uploads in pieces": async () => {
    const stream = Readable.from(content, { objectMode: false });
    const { sent, fileId } = await upload(stream, { ...piece, uploadSize: content.length });
    check(sent.length === 6, sent);
    await checkFile(fileId);
  },
  "creates with content": async () => {
    const { sent, fileId } = await upload(content, { uploadDataDuringCreation: true });
    check(sent.join() === "POST", sent);
    await checkFile(fileId);
  },
  "uploads an empty file": async () => {
    const { fileId } = await upload(Buffer.alloc(0));
    await checkFile(fileId, Buffer.alloc(0));
  },
  "sends POST for PATCH": async () => {
    const { sent, fileId } = await upload(content, { ...piece, overridePatchMethod: true });
    check(sent.every((method) => method === "POST"), sent);
    await checkFile(fileId);
  },
  "continues after an interruption": async () => {
    const { sent, fileId } = await upload(content, piece, (one) => {
      let pieces = 0;
      one.options.onChunkComplete = async () => {
        pieces += 1;
        if (pieces === 2) {
          await one.abort();
          one.start();
        }
      };
      one.start();
    });
    check(sent.includes("HEAD"), sent);
    await checkFile(fileId);
  },
  "begins anew where an upload is unknown": async () => {
    const uploadUrl = `${address}/v1/uploads/tus/upload_01JZ6QXV9T2M4N8P0R3S5W7Y9B`;
    const { sent, fileId } = await upload(content, { uploadUrl });
    check(sent.join() === "HEAD,POST,PATCH", sent);
    await checkFile(fileId);
  },
  "deletes a finished upload": async () => {
    const { made, fileId } = await upload(content);
    await tus.Upload.terminate(made.url, { headers });
    const answer = await fetch(`${address}/v1/files/${fileId}`, { headers });
    check(answer.status === 404, answer.status);
  },
  "reads errors": async () => {
    for (const [options, status] of [
      [{ headers: {} }, 401],
      [{ metadata: { purpose: "none" } }, 400],
      [{ uploadSize: 1 << 30 }, 413],
    ]) {
      const error = await upload(content, options).then(check, (thrown) => thrown);
      check(error.originalResponse?.getStatus() === status, String(error));
    }
  },
};

await run(steps, ["no model"]);
