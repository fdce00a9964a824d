// SCRAM users, ACLs, client quotas.

import { get, path, post, remove } from "./ask.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { button, choices, chips, code, field, panel, state, table } from "./parts.js";

export const OPERATIONS = ["READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT", "ALL"];
export const RESOURCES = ["TOPIC", "GROUP", "TRANSACTIONAL_ID", "CLUSTER", "DELEGATION_TOKEN", "USER"];
/** Quotas with their units. */
export const RATES = { producer_byte_rate: "B/s", consumer_byte_rate: "B/s", request_percentage: "%", controller_mutation_rate: "partitions/s", connection_creation_rate: "connections/s" };
const MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"];
let users_set = 0; // a new form, to clear the password

export const title = () => "Security";

export async function load() {
  const [users, acls, quotas] = await Promise.all([get("v1/users"), get("v1/acls"), get("v1/quotas")]);
  return { ...users, ...acls, ...quotas };
}

export const render = (found, _, tools) => [
  panel("SCRAM users", usersOf(found, tools)),
  panel("ACLs", aclsOf(found, tools)),
  panel("Client quotas", quotasOf(found, tools)),
];

const input = (name, label, props = {}) => field(label, h("input", { name, autocomplete: "off", spellcheck: "false", ...props }));

/** The value of a field, without surrounding blanks unless it is a password. */
const typed = ({ type, value }) => (type === "password" ? value : value.trim());

/** Send a form as the body of a call, without empty fields. */
function sends(work) {
  return (event) => {
    event.preventDefault();
    const { elements } = event.target;
    const values = [...elements].filter((each) => each.name && typed(each) !== "").map((each) => [each.name, typed(each)]);
    work(Object.fromEntries(values));
  };
}

function usersOf({ users }, { act }) {
  const set = ({ user, ...body }) => act(async () => { await post(path`v1/users/${user}`, body); users_set += 1; }, `${user} can log in with ${body.mechanism}.`);
  return [
    table("SCRAM users", [
      ["User", (each) => code(each.name), "wide"],
      ["Mechanisms", (each) => chips(each.mechanisms), "wide"],
      ["", (each) => button("delete", () => act(() => remove(path`v1/users/${each.name}`), `${each.name} is deleted.`), `user ${each.name}`), "actions"],
    ], users, (each) => each.name, "No SCRAM user yet."),
    h("form", { key: users_set, class: "row", "aria-label": "Set a password", onsubmit: sends(set) },
      input("user", "User", { required: true }),
      input("password", "Password", { type: "password", required: true, autocomplete: "new-password" }),
      field("Mechanism", choices("mechanism", MECHANISMS)),
      h("button", { type: "submit" }, "Set the password")),
  ];
}

function aclsOf({ acls, enforced }, { act }) {
  const add = (body) => act(() => post("v1/acls", body), `${body.permission} ${body.operation} for ${body.principal}.`);
  return [
    !enforced && h("p", null, "The brokers have no authorizer, so every client may do everything. Start the server with ",
      code("--set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"), " and ",
      code("--set allow.everyone.if.no.acl.found=true"), ": without the latter, what no ACL allows is denied."),
    table("ACLs", [
      ["Principal", (each) => code(each.principal), "wide"],
      ["From", (each) => each.host],
      ["Permission", (each) => state(each.permission, each.permission === "DENY" ? "bad" : "good")],
      ["Operation", (each) => each.operation],
      ["Resource", (each) => [`${each.resource_type} `, code(each.resource_name), each.pattern === "PREFIXED" && "…"], "wide"],
      ["", (each) => button("remove", () => act(() => remove(path`v1/acls/${each.id}`), "The ACL is removed."), `ACL of ${each.principal} on ${each.resource_name}`), "actions"],
    ], acls, (each) => each.id, "No ACLs yet."),
    enforced && h("form", { class: "fields", "aria-label": "Add an ACL", onsubmit: sends(add) },
      input("principal", "Principal", { required: true, placeholder: "User:alice" }),
      field("Permission", choices("permission", ["ALLOW", "DENY"])),
      field("Operation", choices("operation", OPERATIONS)),
      field("Resource", choices("resource_type", RESOURCES)),
      input("resource_name", "Name", { required: true, placeholder: "orders" }),
      field("The name is", choices("pattern", [["LITERAL", "the whole name"], ["PREFIXED", "a prefix"]])),
      input("host", "Host", { placeholder: "*" }),
      h("button", { type: "submit" }, "Add the ACL")),
  ];
}

function quotasOf({ quotas }, { act }) {
  const set = ({ rate, value, ...entity }) => act(() => post("v1/quotas", { ...entity, quotas: { [rate]: value === undefined ? null : Number(value) } }),
    value === undefined ? `${rate} is removed.` : `${rate} is ${value} ${RATES[rate]}.`);
  const named = (each) => ["user", "client_id", "ip"].filter((kind) => each[kind] !== null).map((kind) => [h("span", { key: kind, class: "chip" }, `${kind.replace("_", " ")} ${each[kind]}`), " "]);
  const drop = (each) => act(async () => {
    const entity = Object.fromEntries(["user", "client_id", "ip"].filter((kind) => each[kind] !== null).map((kind) => [kind, each[kind]]));
    await post("v1/quotas", { ...entity, quotas: Object.fromEntries(Object.keys(each.values).map((rate) => [rate, null])) });
  }, "The quotas are removed.");
  return [
    table("Client quotas", [
      ["Entity", named, "wide"],
      ["Quotas", (each) => Object.entries(each.values).map(([rate, value]) => h("div", { key: rate }, code(rate), ` ${number(value)} ${RATES[rate] ?? ""}`)), "wide"],
      ["", (each) => button("remove", () => drop(each), "quotas"), "actions"],
    ], quotas, (each) => JSON.stringify([each.user, each.client_id, each.ip]), "No client quotas yet."),
    h("form", { class: "fields", "aria-label": "Set a quota", onsubmit: sends(set) },
      input("user", "User", { placeholder: "none" }),
      input("client_id", "Client id", { placeholder: "none" }),
      input("ip", "Address", { placeholder: "none" }),
      h("div", { class: "broad" }, field("Quota", choices("rate", Object.entries(RATES).map(([rate, unit]) => [rate, `${rate}, ${unit}`])))),
      input("value", "Value (empty: remove it)", { type: "number", min: "0", step: "any" }),
      h("button", { type: "submit" }, "Set the quota")),
    h("p", { class: "quiet" }, "The entity of users, client ids or addresses without their own quotas: ", code("<default>"), "."),
  ];
}
