/*
 * What a visit with either generation of the official TypeScript SDK has in common: where to connect to, the plan of the
 * visit, and the one JSON line that tells what was seen.
 *
 * Started in the folder of the environment that holds the SDK, for an import looks beside the file that imports.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const inEnvironment = createRequire(join(process.cwd(), "package.json"));

/** A module of the environment. */
export const load = (name) => inEnvironment(name);

/** The installed version of the one package that the environment was made for. */
function version() {
  const [name] = Object.keys(inEnvironment("./package.json").dependencies);
  return inEnvironment(`./node_modules/${name}/package.json`).version;
}

/** The transport to what the arguments name: `URL [TOKEN]`, or `COMMAND ARGUMENT...`. */
function transportTo([target, ...rest], { Http, Stdio }) {
  if (!target.startsWith("http")) return new Stdio({ command: target, args: rest, cwd: "/" });
  const headers = rest.length ? { Authorization: `Bearer ${rest[0]}` } : {};
  return new Http(new URL(target), { requestInit: { headers } });
}

/** Call a tool; what came back. */
async function called(client, [tool, args]) {
  const result = await client.callTool({ name: tool, arguments: args });
  return {
    tool,
    is_error: result.isError ?? false,
    text: result.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
    structured: result.structuredContent ?? null,
  };
}

/** Do everything in the plan, in order. */
async function seen(client, plan) {
  const prompt = await client.getPrompt({ name: plan.prompt, arguments: plan.prompt_arguments });
  const resource = await client.readResource({ uri: plan.resource });
  const completion = await client.complete({ ref: { type: "ref/prompt", name: plan.prompt }, argument: plan.completion });
  const told = {
    server: client.getServerVersion().name,
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    prompts: (await client.listPrompts()).prompts.map((found) => found.name),
    resources: (await client.listResources()).resources.map((found) => found.uri),
    templates: (await client.listResourceTemplates()).resourceTemplates.map((found) => found.uriTemplate),
    prompt: prompt.messages.map((message) => message.role),
    resource: resource.contents.map((contents) => contents.uri),
    completion: completion.completion.values,
    calls: [],
  };
  for (const call of plan.calls) told.calls.push(await called(client, call));
  return told;
}

/** Connect a client that is made for the plan, visit, end the session, close; then say what was seen. */
export async function main(clientFor, transports) {
  const plan = JSON.parse(readFileSync(0, "utf8"));
  const client = clientFor(plan);
  const transport = transportTo(process.argv.slice(2), transports);
  let protocol = null;
  const agreed = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (revision) => {
    protocol = revision;
    agreed?.(revision);
  };
  await client.connect(transport);
  const session = transport.sessionId ?? null;
  const told = { version: version(), protocol, session, ...(await seen(client, plan)) };
  await transport.terminateSession?.();
  await client.close();
  process.stdout.write(JSON.stringify(told) + "\n");
}
