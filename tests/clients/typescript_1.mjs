/*
 * The official TypeScript SDK 1.x as a client: one visit, told as one JSON line.
 *
 * `node typescript_1.mjs URL [TOKEN]` or `node typescript_1.mjs COMMAND ARGUMENT...` (stdio), in the folder of its
 * environment; the plan of the visit is a JSON object on stdin.
 */

import { load, main } from "./typescript.mjs";

const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport: Http } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { StdioClientTransport: Stdio } = load("@modelcontextprotocol/sdk/client/stdio.js");

await main(() => new Client({ name: "visitor", version: "1" }), { Http, Stdio });
