// Puts a bearer token on every request of the official conformance suite, which has no option for one. Loaded before it
// (`node --import`), started in the folder of its environment. The suite sends by fetch, by undici and by node:http.

import http from "node:http";
import { createRequire } from "node:module";

const authorization = `Bearer ${process.env.CONFORMANCE_TOKEN}`;
const undici = createRequire(`${process.cwd()}/`)("undici");

const { fetch } = globalThis;
globalThis.fetch = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("authorization", authorization);
  return fetch(input, { ...init, headers });
};

for (const client of [undici, http]) {
  const { request } = client;
  client.request = (...given) => {
    const options = given.find((one) => one !== null && one.constructor === Object);
    if (options === undefined) throw new Error("a request without options cannot be given a token");
    options.headers = { ...options.headers, authorization };
    return request(...given);
  };
}
