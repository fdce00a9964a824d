// Calls of the control plane as code that repeats them. Where the server has a token, the code reads it from the environment.

import { hasToken } from "./ask.js";

export const LANGUAGES = [["python", "Python"], ["shell", "understudy ctl"], ["curl", "curl"], ["javascript", "JavaScript"], ["java", "Java"], ["go", "Go"]];
/** Those that can be written of a call that was not made yet. */
export const PLAIN = LANGUAGES.filter(([name]) => name !== "python" && name !== "shell");

const TOKEN = "UNDERSTUDY_CONTROL_TOKEN";
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const literal = (text) => JSON.stringify(text);

/** Calls as code. `calls` are [METHOD PATH BODY, expression in Python, command]; a body is text, so that no number is rounded. */
export function codeOf(language, calls) {
  if (language === "python") return [...PYTHON(), ...calls.map(([, python]) => python)].join("\n");
  if (language === "shell") return calls.map(([, , shell]) => `${shell} --control ${location.origin}`).join("\n"); // it finds the token in the environment
  const parts = calls.map(([http]) => /^(\S+) (\S+)(?: (.*))?$/s.exec(http).slice(1));
  return parts.map(([method, path, body]) => WRITE[language](method, location.origin + path, body)).join("\n");
}

const PYTHON = () => [...(hasToken() ? ["import os", ""] : []), "import understudy", "", `kafka = understudy.connect(${literal(location.origin)}${hasToken() ? `, token=os.environ["${TOKEN}"]` : ""})`];

const WRITE = {
  curl: (method, url, body) => [`curl -X ${method} ${quoted(url)}`, hasToken() && `-H "Authorization: Bearer $${TOKEN}"`, body && `-d ${quoted(body)}`].filter(Boolean).join(" "),
  javascript: (method, url, body) => {
    const options = [`method: ${literal(method)}`, hasToken() && `headers: { Authorization: \`Bearer \${process.env.${TOKEN}}\` }`, body && `body: ${literal(body)}`];
    return `await fetch(${literal(url)}, { ${options.filter(Boolean).join(", ")} });`;
  },
  java: (method, url, body) => [
    `HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(${literal(url)}))`,
    hasToken() && `    .header("Authorization", "Bearer " + System.getenv(${literal(TOKEN)}))`,
    `    .method(${literal(method)}, ${body ? `HttpRequest.BodyPublishers.ofString(${literal(body)})` : "HttpRequest.BodyPublishers.noBody()"}).build(),`,
    "    HttpResponse.BodyHandlers.ofString());",
  ].filter(Boolean).join("\n"),
  go: (method, url, body) => [
    `request, err := http.NewRequest(${literal(method)}, ${literal(url)}, ${body ? `strings.NewReader(${literal(body)})` : "nil"})`,
    hasToken() && `request.Header.Set("Authorization", "Bearer "+os.Getenv(${literal(TOKEN)}))`,
    "response, err := http.DefaultClient.Do(request)",
  ].filter(Boolean).join("\n"),
};
