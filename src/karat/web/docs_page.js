"use strict";
// Everything from the server is shown as text: nothing of it can become markup.

const make = (name, text, more) => Object.assign(document.createElement(name), text === undefined ? {} : {textContent: text}, more);
const put = (parent, ...children) => { parent.append(...children); return parent; };
const pretty = (value) => JSON.stringify(value, null, 2);
const JSON_TYPE = "application/json";

function field(name, about, input) {
  const label = put(make("label"), make("span", name), input);
  return about ? put(label, make("span", about, {className: "soft"})) : label;
}

function choice(options) {
  return put(make("select"), ...options.map((text) => make("option", text, {value: text})));
}

function inputs(operation) {
  return (operation.parameters || []).map((one) => {
    const input = make("input", undefined, {name: one.name, value: one.example || "", autocomplete: "off"});
    input.dataset.place = one.in;
    return {input, row: field(one.name + (one.required ? " *" : ""), one.description, input)};
  });
}

function body(operation) {
  const content = operation.requestBody && operation.requestBody.content[JSON_TYPE];
  if (!content) return null;
  const examples = Object.values(content.examples || {});
  const text = make("textarea", undefined, {value: pretty(examples[0].value), spellcheck: false, ariaLabel: "body"});
  const pick = choice(examples.map((one) => one.summary));
  pick.addEventListener("change", () => { text.value = pretty(examples[pick.selectedIndex].value); });
  return {text, rows: [field("example", "", pick), text]};
}

function address(path, fields) {
  const query = new URLSearchParams();
  let filled = path;
  for (const {input} of fields) {
    if (input.dataset.place === "path") filled = filled.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.place === "query" && input.value) query.set(input.name, input.value);
  }
  return query.size ? `${filled}?${query}` : filled;
}

async function send(method, path, fields, given, accept, status, shown) {
  const headers = {Accept: accept};
  const key = document.getElementById("key").value.trim();
  if (key) headers.Authorization = `Bearer ${key}`;
  for (const {input} of fields) if (input.dataset.place === "header" && input.value) headers[input.name] = input.value;
  if (given) headers["Content-Type"] = JSON_TYPE;
  status.textContent = "…";
  shown.hidden = true;
  const begin = performance.now();
  try {
    const answer = await fetch(address(path, fields), {method: method.toUpperCase(), headers, body: given ? given.text.value : undefined});
    const type = answer.headers.get("Content-Type") || "";
    const place = answer.headers.get("Location");
    status.className = answer.ok ? "good" : "bad";
    status.textContent = ` ${answer.status} ${answer.statusText} · ${Math.round(performance.now() - begin)} ms${place ? ` · ${place}` : ""}`;
    const binary = /arrow|parquet/.test(type);
    const text = binary ? `${(await answer.arrayBuffer()).byteLength} bytes of ${type}` : await answer.text();
    shown.textContent = type.includes("json") ? pretty(JSON.parse(text)) : text;
    shown.hidden = !text;
  } catch (error) {
    status.className = "bad";
    status.textContent = ` ${error.message}`;
  }
}

function shownOperation(method, path, operation) {
  const whole = make("details", undefined, {id: operation.operationId});
  put(whole, put(make("summary"), make("span", method, {className: "method"}), make("code", path), make("span", ` ${operation.summary}`)));
  const inside = make("div", undefined, {className: "inside"});
  if (operation.description) put(inside, make("p", operation.description));
  const fields = inputs(operation);
  const given = body(operation);
  const optional = fields.filter(({input}) => given && input.dataset.place !== "path").map((one) => one.row);
  put(inside, ...fields.map((one) => one.row).filter((row) => !optional.includes(row)), ...(given ? given.rows : []));
  const good = Object.keys(operation.responses).find((status) => status.startsWith("2") && status !== "202");
  const forms = Object.keys(operation.responses[good].content || {"*/*": 0});
  const accept = choice(forms);
  if (forms.length > 1) put(inside, field("answer as", "", accept));
  const button = make("button", "Send", {type: "button"});
  const status = make("span", "", {role: "status"});
  const shown = make("pre", "", {hidden: true, tabIndex: 0});
  button.addEventListener("click", () => send(method, path, fields, given, accept.value, status, shown));
  const statuses = Object.entries(operation.responses).map(([code, one]) => `${code} ${one.description}`).join(" · ");
  put(inside, button, status, shown, make("p", statuses, {className: "soft"}));
  if (optional.length) put(inside, put(make("details"), make("summary", "optional parameters and headers"), put(make("div", undefined, {className: "inside"}), ...optional)));
  return put(whole, inside);
}

function shownSchema(name, schema) {
  const whole = put(make("details", undefined, {id: `schema-${name}`}), put(make("summary"), make("code", name), make("span", ` ${schema.description || ""}`)));
  return put(whole, put(make("div", undefined, {className: "inside"}), make("pre", pretty(schema), {tabIndex: 0})));
}

async function start() {
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  const all = document.getElementById("operations");
  const found = await (await fetch("openapi.json")).json();
  document.getElementById("about").textContent = `${found.info.description} Version ${found.info.version}.`;
  for (const {name, description} of found.tags) {
    put(all, make("h2", name), make("p", description, {className: "soft"}));
    for (const [path, methods] of Object.entries(found.paths))
      for (const [method, operation] of Object.entries(methods))
        if (operation.tags.includes(name)) put(all, shownOperation(method, path, operation));
  }
  put(all, make("h2", "schemas"), ...Object.entries(found.components.schemas).map(([name, one]) => shownSchema(name, one)));
  document.body.dataset.ready = "true";
}

start().catch((error) => { document.getElementById("about").textContent = error.message; });
