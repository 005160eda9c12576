/*
 * The official TypeScript SDK 2.x as a client: `node typescript_2.mjs` in the folder of its environment; the rest is said
 * in typescript.mjs. A plan's `mode` is that of the SDK's negotiation: "legacy", the SDK's own default, or "auto", which
 * probes `server/discover` first.
 */

import { load, main } from "./typescript.mjs";

const { Client, StreamableHTTPClientTransport: Http } = load("@modelcontextprotocol/client");
const { StdioClientTransport: Stdio } = load("@modelcontextprotocol/client/stdio");

function made(plan, answer) {
  const options = { capabilities: { elicitation: {} }, versionNegotiation: { mode: plan.mode } };
  const client = new Client({ name: "visitor", version: "1" }, options);
  client.setRequestHandler("elicitation/create", answer);
  return {
    client,
    call: (client, params, options) => client.callTool(params, options),
    onChange: (act) => client.setNotificationHandler("notifications/prompts/list_changed", act),
  };
}

await main(made, { Http, Stdio });
