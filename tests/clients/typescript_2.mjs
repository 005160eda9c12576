/*
 * The official TypeScript SDK 2.x as a client: one visit, told as one JSON line.
 *
 * `node typescript_2.mjs URL [TOKEN]` or `node typescript_2.mjs COMMAND ARGUMENT...` (stdio), in the folder of its
 * environment; the plan of the visit is a JSON object on stdin. Its `mode` is that of the SDK's negotiation: "legacy",
 * the SDK's own default, or "auto", which probes `server/discover` first.
 */

import { load, main } from "./typescript.mjs";

const { Client, StreamableHTTPClientTransport: Http } = load("@modelcontextprotocol/client");
const { StdioClientTransport: Stdio } = load("@modelcontextprotocol/client/stdio");

const client = (mode) => new Client({ name: "visitor", version: "1" }, { versionNegotiation: { mode } });

await main((plan) => client(plan.mode ?? "legacy"), { Http, Stdio });
