/*
 * The official TypeScript SDK 1.x as a client: `node typescript_1.mjs` in the folder of its environment; the rest is said
 * in typescript.mjs.
 */

import { load, main } from "./typescript.mjs";

const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport: Http } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { StdioClientTransport: Stdio } = load("@modelcontextprotocol/sdk/client/stdio.js");
const types = load("@modelcontextprotocol/sdk/types.js");

function made(plan, answer) {
  const client = new Client({ name: "visitor", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(types.ElicitRequestSchema, answer);
  return {
    client,
    call: (client, params, options) => client.callTool(params, undefined, options),
    onChange: (act) => client.setNotificationHandler(types.PromptListChangedNotificationSchema, act),
  };
}

await main(made, { Http, Stdio });
