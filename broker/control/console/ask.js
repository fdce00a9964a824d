// The verbs over HTTP, with the token where the server wants one.

import { exactly, exactValue } from "./format.js";

const STORED = "understudy.token";
let token = sessionStorage.getItem(STORED);

/** What a verb refused, in its own words. */
export class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Nobody answered. */
export class Silence extends Error {}

export const hasToken = () => token !== null;

/** Keep the token for this tab. */
export function remember(said) {
  token = said;
  sessionStorage.setItem(STORED, said);
}

let steered = false;

/** Whether something has steered the cluster since this was last asked. */
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
    throw new Silence("The server does not answer.");
  }
  if (answer.ok) {
    steered ||= method !== "GET" && path !== "v1/reset" && !path.startsWith("v1/journal");
    return answer;
  }
  const problem = await answer.json().catch(() => ({}));
  throw new Refusal(answer.status, problem.detail ?? `${method} ${path}: ${answer.status}`);
}

/** A path of the control plane: names in it are escaped. */
export function path(parts, ...names) {
  return String.raw({ raw: parts }, ...names.map((name) => encodeURIComponent(name)));
}

/** The query string of what is not empty. */
export function query(fields) {
  const said = Object.entries(fields).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return said.length ? `?${new URLSearchParams(said)}` : "";
}

export const get = async (where) => (await send(where, "GET")).json();
/** As `get`, with every integer exact. */
export const getExactly = async (where) => exactValue(await (await send(where, "GET")).text());
export const post = async (where, body = {}) => (await send(where, "POST", body)).json();
export const put = async (where, body) => (await send(where, "PUT", body)).json();
export const remove = async (where) => (await send(where, "DELETE")).json();
export const download = async (where) => (await send(where, "GET")).blob();
