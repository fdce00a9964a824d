// The calls that changed the cluster since its start or last reset: copy as code, save as a file, run again.

import { getExactly, post } from "./ask.js";
import { callOf, codeOf, LANGUAGES } from "./code.js";
import { h } from "./dom.js";
import { exactly, exactValue, number, plural } from "./format.js";
import { button, choices, code, copy, field, panel, save, time } from "./parts.js";

let language = "python";

export const title = () => "Scenario";

export const load = () => getExactly("v1/scenario");

export function render(recorded, _, { act, refresh }) {
  const { steps, dropped } = recorded;
  const calls = steps.map((step) => step.calls);
  const kept = () => exactly({ ...recorded, steps: steps.map(({ calls: _, ...step }) => step) }, 1);
  const run = async (event) => {
    event.preventDefault();
    const [file] = event.target.elements.file.files;
    const text = await file.text();
    act(async () => post("v1/scenario", exactValue(text)), `The steps of ${file.name} have run.`);
  };
  return [
    panel("Steps since the start or the last reset",
      steps.length === 0
        ? h("p", { class: "empty" }, "No steps yet: no fault was added, nothing held, the clock not advanced.")
        : [
          h("div", { class: "row" },
            field("As", choices("language", LANGUAGES, language, (event) => { language = event.target.value; refresh({ redraw: true }); })),
            button("Copy all", () => act(() => copy(codeOf(language, calls)), `${plural(steps.length, "step")} copied.`)),
            button("Save as a file", () => act(() => save(new Blob([kept()], { type: "application/json" }), "scenario.json")))),
          h("ol", { class: "steps", "aria-label": "Steps" }, steps.map((step, at) => line(step, at, act))),
        ],
      dropped > 0 && h("p", { class: "quiet" }, `${number(dropped)} older steps were dropped.`)),
    panel("Run a scenario file",
      h("p", { class: "quiet" }, "A server can start with one: ", code("understudy serve --scenario scenario.json"), ". In a shell: ", code("understudy ctl scenario run scenario.json"), "."),
      h("form", { class: "row", onsubmit: run },
        field("Scenario file", h("input", { type: "file", name: "file", accept: ".json,application/json", required: true })),
        h("button", { type: "submit" }, "Run the steps"))),
  ];
}

function line(step, at, act) {
  return h("li", { key: at },
    h("div", { class: "head" }, h("strong", null, step.verb), step.at_ms >= 0 && h("span", { class: "quiet" }, time(step.at_ms)),
      button("copy", () => act(() => copy(codeOf(language, [step.calls])), "Copied."), `step ${at + 1}`)),
    h("pre", { tabindex: "0" }, callOf(language, step.calls)));
}
