/*
 * What a visit with either generation of the official TypeScript SDK has in common: where to connect to, what is done
 * there, and the JSON line that tells what was seen. The plans of the visits are a JSON array on stdin; they are made
 * side by side. A plan's `target` is `[URL, TOKEN]`, `[URL]`, or `[COMMAND, ARGUMENT...]` (stdio).
 *
 * Started in the folder of the environment that holds the SDK, for an import looks beside the file that imports.
 */

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const inEnvironment = createRequire(join(process.cwd(), "package.json"));

/** A module of the environment. */
export const load = (name) => inEnvironment(name);

/** The installed version of the one package that the environment was made for. */
function version() {
  const [name] = Object.keys(inEnvironment("./package.json").dependencies);
  return inEnvironment(`./node_modules/${name}/package.json`).version;
}

/** The transport to a target. */
function transportTo([target, ...rest], { Http, Stdio }) {
  if (!target.startsWith("http")) return new Stdio({ command: target, args: rest, cwd: "/" });
  const headers = rest.length ? { Authorization: `Bearer ${rest[0]}` } : {};
  return new Http(new URL(target), { requestInit: { headers } });
}

/** Call a tool with the SDK's own options; what came back. */
async function called({ client, call }, [tool, args], options) {
  const result = await call(client, { name: tool, arguments: args }, options);
  return {
    tool,
    is_error: result.isError ?? false,
    text: result.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
    structured: result.structuredContent ?? null,
  };
}

/** Put a text in the place of a file; nobody reads half of it. */
function replace({ path, text }) {
  const fresh = join(dirname(path), `.harness-${process.pid}`);
  writeFileSync(fresh, text);
  renameSync(fresh, path);
}

/** A long call that is let go once its progress and a change of the prompts were heard. */
async function followed(made, plan, protocol) {
  const progress = [];
  let told, changed;
  const isTold = new Promise((done) => (told = done));
  const isChanged = new Promise((done) => (changed = done));
  made.onChange(changed);
  const listener = protocol < "2026" ? null : await made.client.listen({ promptsListChanged: true });
  const onprogress = (note) => {
    progress.push(note.progress);
    told();
  };
  const call = called(made, plan.wait, { onprogress });
  await isTold;
  replace(plan.harness);
  await isChanged;
  await called(made, plan.release);
  const through = await call;
  await listener?.close();
  const rises = progress.every((done, at) => at === 0 || done > progress[at - 1]);
  return { is_error: through.is_error, progress: progress.length > 0 && rises, changed: true };
}

/** Do everything in the plan, in order. */
async function seen(made, plan, protocol) {
  const { client } = made;
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
  for (const call of plan.calls) told.calls.push(await called(made, call));
  told.followed = plan.wait ? await followed(made, plan, protocol) : null;
  return told;
}

/** Connect a client, visit, end the session, close; then say what was seen. */
async function visit(plan, makeClient, transports) {
  const asked = [];
  const answer = (question) => {
    asked.push(question.params.message);
    return { action: "accept", content: { answer: plan.answer } };
  };
  const made = makeClient(plan, answer);
  const transport = transportTo(plan.target, transports);
  let protocol = null;
  const agreed = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (revision) => {
    protocol = revision;
    agreed?.(revision);
  };
  await made.client.connect(transport);
  const session = transport.sessionId ?? null;
  const told = { ...(await seen(made, plan, protocol)), asked };
  await transport.terminateSession?.();
  await made.client.close();
  process.stdout.write(JSON.stringify({ name: plan.name, version: version(), protocol, session, ...told }) + "\n");
}

/**
 * Make all the visits. `makeClient` gives, for a plan and what answers questions, the `client`, how to `call` a tool
 * with it, and how to hear that the prompts have changed (`onChange`).
 */
export async function main(makeClient, transports) {
  const plans = JSON.parse(readFileSync(0, "utf8"));
  await Promise.all(plans.map((plan) => visit(plan, makeClient, transports)));
}
