// Generates code that repeats calls of the control plane. If the server has a token, the code reads it from the environment.

import { hasToken } from "./ask.js";

export const LANGUAGES = [["python", "Python"], ["shell", "understudy ctl"], ["curl", "curl"], ["javascript", "JavaScript"], ["java", "Java"], ["go", "Go"]];
/** The languages available for a call that has not been made yet. */
export const PLAIN = LANGUAGES.filter(([name]) => name !== "python" && name !== "shell");

const TOKEN = "UNDERSTUDY_CONTROL_TOKEN";
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const literal = (text) => JSON.stringify(text);

/** A program that makes these calls. `calls` are [METHOD PATH BODY, expression in Python, command]; a body is text, so that no number is rounded. */
export const codeOf = (language, calls) => AROUND[language](calls.map((call) => callOf(language, call)));

/** One call within such a program. */
export function callOf(language, [http, python, shell]) {
  if (language === "python") return python;
  if (language === "shell") return `${shell} --control ${location.origin}`; // reads the token from the environment
  const [method, path, body] = /^(\S+) (\S+)(?: (.*))?$/s.exec(http).slice(1);
  const url = location.origin + path;
  if (language === "curl") return [`curl -sS --fail-with-body -X ${method} ${quoted(url)}`, hasToken() && `-H "Authorization: Bearer $${TOKEN}"`, body && `-d ${quoted(body)}`].filter(Boolean).join(" ");
  if (language === "javascript") return `await call(${[method, url, body].filter((each) => each !== undefined).map(literal).join(", ")});`;
  return `call(${literal(method)}, ${literal(url)}, ${literal(body ?? "")})${language === "java" ? ";" : ""}`;
}

const lines = (...texts) => texts.flat().filter((text) => text !== false).join("\n");

/** Program templates; each program fails at the first call that the server refuses. */
const AROUND = {
  python: (calls) => lines(hasToken() && ["import os", ""], "import understudy", "", `kafka = understudy.connect(${literal(location.origin)}${hasToken() ? `, token=os.environ["${TOKEN}"]` : ""})`, calls),
  shell: (calls) => lines(calls),
  curl: (calls) => lines(calls),
  javascript: (calls) => lines(
    "const call = async (method, url, body) => {",
    `  const answer = await fetch(url, { method, body${hasToken() ? `, headers: { Authorization: \`Bearer \${process.env.${TOKEN}}\` }` : ""} });`,
    "  if (!answer.ok) throw new Error(await answer.text());",
    "};",
    calls),
  java: (calls) => lines(
    "import java.net.URI;",
    "import java.net.http.HttpClient;",
    "import java.net.http.HttpRequest;",
    "import java.net.http.HttpResponse;",
    "",
    "class Steps {",
    "    static final HttpClient CLIENT = HttpClient.newHttpClient();",
    "",
    "    static void call(String method, String url, String body) throws Exception {",
    "        var request = HttpRequest.newBuilder(URI.create(url))",
    hasToken() && `            .header("Authorization", "Bearer " + System.getenv(${literal(TOKEN)}))`,
    "            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();",
    "        var answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());",
    "        if (answer.statusCode() != 200) throw new IllegalStateException(answer.body());",
    "    }",
    "",
    "    public static void main(String[] args) throws Exception {",
    calls.map((call) => `        ${call}`),
    "    }",
    "}"),
  go: (calls) => lines(
    "package main",
    "",
    "import (",
    ["io", "log", "net/http", hasToken() && "os", "strings"].filter(Boolean).map((name) => `\t"${name}"`),
    ")",
    "",
    "func call(method, url, body string) {",
    "\trequest, err := http.NewRequest(method, url, strings.NewReader(body))",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    hasToken() && `\trequest.Header.Set("Authorization", "Bearer "+os.Getenv(${literal(TOKEN)}))`,
    "\tresponse, err := http.DefaultClient.Do(request)",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tdefer response.Body.Close()",
    "\tif response.StatusCode != http.StatusOK {",
    "\t\tanswer, _ := io.ReadAll(response.Body)",
    "\t\tlog.Fatalf(\"%s %s: %s\", method, url, answer)",
    "\t}",
    "}",
    "",
    "func main() {",
    calls.map((call) => `\t${call}`),
    "}"),
};
