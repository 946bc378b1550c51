// A server on this machine that speaks as much of the hub's protocol as a download needs.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const COMMIT = "c0ffee".repeat(6) + "1234";

/** Serves each folder under the name of a repository. `slow`: bytes a second of weights, while that is not null. */
export async function startHub(repositories) {
  const files = new Map();
  for (const [repository, folder] of Object.entries(repositories)) {
    for (const name of readdirSync(folder)) files.set(`${repository}/${name}`, readFileSync(join(folder, name)));
  }
  const hub = { requests: [], slow: null, url: "", close: () => new Promise((done) => server.close(done).closeAllConnections()) };

  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://hub").pathname.slice(1));
    hub.requests.push(`${request.method} ${path}${request.headers.range ? ` ${request.headers.range}` : ""}`);
    const resolved = /^(.+)\/resolve\/[^/]+\/(.+)$/.exec(path);
    const file = files.get(resolved ? `${resolved[1]}/${resolved[2]}` : path.replace(/^weights\//, ""));
    if (!file) return response.writeHead(404).end();
    const sha256 = createHash("sha256").update(file).digest("hex");
    response.setHeader("x-repo-commit", COMMIT);
    if (resolved && path.endsWith(".safetensors")) {
      // Weights lie elsewhere.
      const headers = { location: `${hub.url}/weights/${resolved[1]}/${resolved[2]}`, "x-linked-size": file.length, "x-linked-etag": `"${sha256}"`, "content-length": 0 };
      return response.writeHead(302, headers).end();
    }
    const etag = path.startsWith("weights/") ? `"v-${sha256.slice(0, 8)}"` : `"${createHash("sha1").update(`blob ${file.length}\0`).update(file).digest("hex")}"`;
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const headers = { etag, "accept-ranges": "bytes", "content-length": file.length - from };
    if (from > 0) headers["content-range"] = `bytes ${from}-${file.length - 1}/${file.length}`;
    response.writeHead(from > 0 ? 206 : 200, headers);
    if (request.method === "HEAD") return response.end();
    // In pieces, so that a test can look on; without a pause once it has seen enough.
    let at = from;
    while (at < file.length && !response.destroyed) {
      const piece = hub.slow === null || !path.startsWith("weights/") ? file.length : Math.max(1, Math.round(hub.slow / 20));
      response.write(file.subarray(at, at + piece));
      at += piece;
      if (at < file.length) await new Promise((done) => setTimeout(done, 50));
    }
    response.end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  hub.url = `http://127.0.0.1:${server.address().port}`;
  return hub;
}
