// The clock in the page's header: shows the cluster's time, and advances it.

import { get, post } from "./ask.js";
import { h } from "./dom.js";
import { duration, instant, parsed } from "./format.js";
import { button, state } from "./parts.js";

const STEPS = [["10 s", 10_000], ["1 min", 60_000], ["15 min", 900_000], ["1 h", 3_600_000], ["1 d", 86_400_000], ["7 d", 604_800_000]];

export const load = () => get("v1/clock");

export function render(clock, { act, complain }) {
  const push = (ms) => act(() => post("v1/clock/advance", { ms }), `The clock has advanced by ${duration(ms)}, and all timers that became due have run.`);
  const pushGiven = (event) => {
    event.preventDefault();
    const ms = parsed(event.target.elements.by.value);
    if (ms === undefined) complain("Enter a duration such as 90s, 15m, 2h or 7d.");
    else push(ms);
  };
  const now = instant(clock.now_ms);
  return h("details", null,
    h("summary", null,
      h("time", { datetime: now, title: now }, now.slice(11, 19)),
      clock.ahead_ms >= 1000 && state(`${duration(clock.ahead_ms)} ahead`, "busy"),
      clock.frozen && state("frozen", "busy")),
    h("div", { class: "drawer" },
      h("p", null, now.replace("T", " ")),
      h("p", null, "Every timer of the cluster follows this clock: transactions, sessions, rebalances, retention, long polls."),
      h("div", { class: "row" }, STEPS.map(([text, ms]) => h("button", { key: ms, type: "button", onclick: () => push(ms), "aria-label": `Advance by ${text}` }, `+ ${text}`))),
      h("form", { class: "row", onsubmit: pushGiven },
        h("label", { class: "field" }, h("span", null, "Advance by"), h("input", { name: "by", placeholder: "90s", autocomplete: "off", size: 8 })),
        h("button", { type: "submit" }, "Advance"),
        clock.frozen
          ? button("Thaw", () => act(() => post("v1/clock/thaw"), "The clock runs again."))
          : button("Freeze", () => act(() => post("v1/clock/freeze"), "The clock is frozen.")))));
}
