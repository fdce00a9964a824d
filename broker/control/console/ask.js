// Calls the verbs over HTTP, with the token if the server requires one.

import { exactly, exactValue } from "./format.js";

const STORED = "understudy.token";
let token = sessionStorage.getItem(STORED);

/** An error response of a verb; the message is its detail. */
export class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** The server did not respond. */
export class Silence extends Error {}

export const hasToken = () => token !== null;

/** Store the token for this tab. */
export function remember(said) {
  token = said;
  sessionStorage.setItem(STORED, said);
}

let steered = false;

/** Return whether a call has changed the cluster since the last call of this function. */
export function steers() {
  const found = steered;
  steered = false;
  return found;
}

async function send(path, method, body) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : exactly(body) });
  } catch {
    throw new Silence("The server does not respond.");
  }
  if (answer.ok) {
    steered ||= method !== "GET" && path !== "v1/reset" && !path.startsWith("v1/journal");
    return answer;
  }
  const problem = await answer.json().catch(() => ({}));
  throw new Refusal(answer.status, problem.detail ?? `${method} ${path}: ${answer.status}`);
}

/** A path of the control plane, with its names escaped. */
export function path(parts, ...names) {
  return String.raw({ raw: parts }, ...names.map((name) => encodeURIComponent(name)));
}

/** The query string of all fields that are not empty. */
export function query(fields) {
  const said = Object.entries(fields).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return said.length ? `?${new URLSearchParams(said)}` : "";
}

export const get = async (where) => (await send(where, "GET")).json();
/** Like `get`, with exact integers beyond 2^53. */
export const getExactly = async (where) => exactValue(await (await send(where, "GET")).text());
export const post = async (where, body = {}) => (await send(where, "POST", body)).json();
export const put = async (where, body) => (await send(where, "PUT", body)).json();
export const remove = async (where) => (await send(where, "DELETE")).json();
export const download = async (where) => (await send(where, "GET")).blob();
