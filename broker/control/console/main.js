// The page: selects the view, refreshes it every second, and reports errors.

import { hasToken, Refusal, remember, steers } from "./ask.js";
import * as clients from "./clients.js";
import * as clock from "./clock.js";
import * as cluster from "./cluster.js";
import * as clusters from "./clusters.js";
import * as diagrams from "./diagrams.js";
import { h, patch } from "./dom.js";
import * as faults from "./faults.js";
import { setNow } from "./format.js";
import * as groups from "./groups.js";
import * as home from "./home.js";
import * as journal from "./journal.js";
import * as producers from "./producers.js";
import * as scenario from "./scenario.js";
import * as security from "./security.js";
import * as topics from "./topics.js";
import * as transactions from "./transactions.js";

const EVERY_MS = 1000;
const VIEWS = { "": home, cluster, clients, topics, groups, transactions, producers, diagrams, journal, faults, security, scenario };
const NAMES = { "": "Overview", cluster: "Cluster", clients: "Clients", topics: "Topics", groups: "Groups", transactions: "Transactions", producers: "Producers", diagrams: "Diagrams", journal: "Journal", faults: "Faults", security: "Security", scenario: "Scenario" };

const at = (id) => document.getElementById(id);
let shown = null; // the data of the view, and its address
let asking = 0; // the latest round; late results of older rounds are not shown
let timer;
let pressed = false; // whether the pointer is down

/** The address without its filters, which a view reads itself. */
const place = () => location.hash.split("?")[0];

function address() {
  const [section, ...names] = place().replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const known = section in VIEWS ? section : "";
  return { section: known, names: names.filter((name) => name !== ""), view: VIEWS[known] };
}

function heading({ section, names, view }) {
  const above = names.length > 0 && [h("a", { href: `#/${section}` }, NAMES[section]), h("span", { "aria-hidden": "true" }, " / ")];
  return h("h1", { key: "heading" }, above, view.title(names));
}

function draw() {
  const where = address();
  const { section, names, view } = where;
  document.title = `${view.title(names)} · Understudy`;
  patch(at("nav"), Object.entries(NAMES).map(([name, text]) =>
    h("a", { key: name, href: `#/${name}`, "aria-current": name === section ? "page" : undefined }, text)));
  if (shown === null || shown.hash !== place()) return;
  patch(at("clusters"), clusters.render(shown.clusters));
  patch(at("clock"), clock.render(shown.clock, tools));
  at("content").classList.toggle("wide", view.wide === true);
  patch(at("content"), [
    heading(where),
    h("div", { key: place(), class: "view" }, view.render(shown.data, names, { ...tools, now_ms: shown.clock.now_ms })),
  ]);
}

async function round() {
  clearTimeout(timer);
  const mine = ++asking;
  const { names, view } = address();
  const hash = place();
  try {
    const [now, all, data] = await Promise.all([clock.load(), clusters.load(), view.load(names)]);
    if (mine !== asking) return;
    setNow(now.now_ms);
    shown = { hash, clock: now, clusters: all, data };
    settle();
    if (!pressed) draw(); // do not move what is being clicked
  } catch (error) {
    if (mine !== asking) return;
    failed(error);
  }
  timer = setTimeout(round, document.hidden ? EVERY_MS * 10 : EVERY_MS);
}

// ---------------------------------------------------------------- errors

let lasting = false; // whether the error comes from the periodic refresh

function failed(error) {
  if (error instanceof Refusal && error.status === 401) {
    askForToken();
    return;
  }
  if (error instanceof TypeError || error instanceof SyntaxError) console.error(error);
  lasting = true;
  const isGone = error instanceof Refusal && error.status === 404;
  at("problem").textContent = isGone ? "" : error.message;
  if (isGone || shown?.hash !== place()) patch(at("content"), [heading(address()), h("p", { class: "empty" }, error.message)]);
}

function settle() {
  if (lasting) at("problem").textContent = "";
  lasting = false;
}

function complain(text) {
  lasting = false;
  at("problem").textContent = text;
}

// ---------------------------------------------------------------- actions of the views

/** Run an action, report its success or error, and refresh. `done` is a text, or a function from the result to a text. */
async function act(work, done = "") {
  complain("");
  patch(at("told"), []);
  try {
    steers(); // ignore earlier changes
    const found = await work();
    draw(); // clears forms
    const text = typeof done === "function" ? done(found) : done;
    patch(at("told"), text === "" ? [] : [text, steers() && [" ", h("a", { href: "#/scenario" }, "Copy it as code")]]);
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) askForToken();
    else complain(error.message);
  }
  await round();
}

/** Refresh; with `redraw` from data that is already loaded. */
function refresh({ redraw = false } = {}) {
  if (redraw) draw();
  else round();
}

function confirm(title, text, yes, work) {
  const dialog = at("dialog");
  patch(dialog, h("form", { key: title, method: "dialog", onsubmit: work },
    h("h2", { id: "dialog-title" }, title), h("p", null, text),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, yes),
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
  dialog.showModal();
}

const tools = { act, refresh, confirm, complain };

// ---------------------------------------------------------------- the token

function askForToken() {
  const dialog = at("dialog");
  if (dialog.open) return;
  const taken = (event) => remember(event.target.elements.token.value.trim());
  patch(dialog, h("form", { key: "token", method: "dialog", onsubmit: taken },
    h("h2", { id: "dialog-title" }, "This server requires a token"),
    h("p", null, "It was started with ", h("code", null, "--control-token"), ". The token is stored until this tab is closed."),
    hasToken() && h("p", { class: "state bad" }, "The server does not accept this token."),
    h("label", { class: "field" }, h("span", null, "Token"), h("input", { name: "token", type: "password", required: true, autocomplete: "off" })),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Open"))));
  dialog.addEventListener("close", () => round(), { once: true });
  dialog.showModal();
}

// ---------------------------------------------------------------- start

addEventListener("hashchange", () => {
  patch(at("told"), []);
  complain("");
  draw();
  at("content").focus({ preventScroll: true });
  scrollTo(0, 0);
  round();
});
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel", "blur"]) {
  addEventListener(end, () => { if (pressed) setTimeout(() => { pressed = false; draw(); }); }, true); // after the click that follows
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) round(); });
draw();
round();
