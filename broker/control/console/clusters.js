// The chooser of the cluster in the header; it is there if the process has several.

import { get, Refusal } from "./ask.js";
import { h } from "./dom.js";

const FIRST = "1";
const [, root, here = FIRST] = location.pathname.match(/^(.*?\/)(?:clusters\/([^/]+)\/)?$/) ?? [null, "/"];

/** The clusters of the process; none behind a proxy. */
export async function load() {
  try {
    return (await get("v1/clusters")).clusters;
  } catch (error) {
    if (error instanceof Refusal && error.status === 409) return [];
    throw error;
  }
}

/** The list that is shown, without the name of what only this cluster may have. */
const section = () => /^#\/\w*/.exec(location.hash)?.[0] ?? "";

export function render(clusters) {
  if (clusters.length < 2) return [];
  const go = (event) => { location.href = `${event.target.value === FIRST ? root : `${root}clusters/${event.target.value}/`}${section()}`; };
  return [h("label", { key: "clusters" }, h("span", null, "Cluster "), h("select", { name: "cluster", onchange: go },
    clusters.map(({ id, name }) => h("option", { key: id, value: id, selected: id === here }, name))))];
}
